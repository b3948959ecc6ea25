"""What is measured, against what. `make bench` runs `bench.ingest`."""
