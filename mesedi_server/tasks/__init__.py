"""Background work. Due work is a fact in the database; the broker only wakes a worker."""
