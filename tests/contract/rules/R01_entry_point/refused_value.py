orchestrate = lambda ctx, args: args  # R01
