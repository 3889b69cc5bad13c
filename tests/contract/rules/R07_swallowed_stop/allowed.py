RETRYABLE = (ValueError, KeyError)


async def orchestrate(ctx, args):
    note = "started"
    try:
        image = await ctx.run("image.generate", {"prompt": "a"})
    except CapabilityError as e:
        image = {"kind": e.kind, "text": e.text}
    except RETRYABLE:
        image = None
    except Exception:
        pass
    else:
        note = "drawn"
    finally:
        note += "."
        for word in note.split():
            if word:
                break

        def tell():
            return note

        ctx.log(tell())
    try:
        count = int(args["count"])
    except ValueError:
        pass
    return {"image": image, "note": note, "count": count}
