"""Typed configuration: schema, composition, validation, identity and units."""
