"""Every SQL statement of the server, and nothing else.

Functions take an open connection and never commit: the transaction opens at the edge, with
`Database.transaction()`.
"""
