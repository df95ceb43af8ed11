"""Tasks, cold-start answers, prompts and the small tokenizer, each beside the script that makes it."""
