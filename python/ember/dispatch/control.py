"""Translations: control."""
