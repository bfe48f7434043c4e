"""Real SGLang on a machine without GPU: its environment, its model, its servers as processes and as pods."""
