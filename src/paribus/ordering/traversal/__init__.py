"""In which sequence training reads contexts: by stretches of text that no tokenizer decides, or as the papers do."""
