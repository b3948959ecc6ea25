"""Playbooks: one Markdown file a failure class."""
