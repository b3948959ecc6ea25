"""Helpers with the reference's names, one score a call.

New code calls `mesedi.emit_ragas`, `emit_promptfoo` and `emit_hhem`, which take whole results.
"""
