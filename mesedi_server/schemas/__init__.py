"""The wire format: what is read from requests, and what is refused.

Events are decoded by typed structs, since there are many; envelopes and settings by marshmallow.
"""
