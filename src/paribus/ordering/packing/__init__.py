"""How ordered documents become contexts of one length."""
