"""Translated splits: engines, stored translations, guards of their quality, aligners and transliterators."""
