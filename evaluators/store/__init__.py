"""The SQLite file of a run directory, and every SQL statement of this package.

Texts are stored once: recorded answers in `dataset`, generated ones in `observations`. All else
refers to them by position and digest. Functions take an open connection and never commit;
`database.transaction` does, at the edge.
"""
