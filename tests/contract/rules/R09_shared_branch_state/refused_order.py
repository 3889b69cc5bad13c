async def orchestrate(ctx, args):
    board, texts, seen = [], [], {}
    last = None

    async def picture(aspect):
        image = await ctx.run("image.generate", {"prompt": aspect})
        board.append(image)  # R09

    async def story(aspect):
        nonlocal last
        text = await ctx.run("text.generate", {"prompt": aspect})
        last = text  # R09
        texts.append(text["text"])  # R09
        seen[aspect] = text  # R09

    await ctx.parallel([picture(a) for a in ("a", "b")])
    await ctx.pipeline(["a", "b"], story)
    for aspect, text in seen.items():
        ctx.log(f"{aspect}: {text}")
    return {"first": board[0], "all": "\n".join(texts), "last": last}
