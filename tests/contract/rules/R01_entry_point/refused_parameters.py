async def orchestrate(context, params):  # R01
    return params
