"""Tasks that lm-eval or a directory of the user's defines: what their YAML says, their records, and items of ours."""
