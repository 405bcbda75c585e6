"""Verifies the draw of a waiting room from its exported files, by docs/draw.md alone."""
