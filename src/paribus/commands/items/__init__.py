"""The verb `paribus items`: what each arm answered, item by item."""
