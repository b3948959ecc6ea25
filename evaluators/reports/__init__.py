"""What an evaluation looks like: text, JSON, HTML, JUnit, Markdown; one module a form.

Every long form is written piece by piece, so that memory does not grow with the answers.
"""
