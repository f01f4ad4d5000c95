"""Translations: sort."""
