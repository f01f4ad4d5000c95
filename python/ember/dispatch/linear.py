"""Translations: linear."""
