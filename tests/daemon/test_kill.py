from daemon_support import premises

FANOUT = '''async def orchestrate(ctx, args):
    async def shot(i):
        return await ctx.run("image.generate", {"prompt": f"shot {i}"})
    return len(await ctx.parallel([shot(i) for i in range(8)]))
'''

async def test_x():
    async with premises() as place:
        await place.take_calls()
        async with place.open() as (daemon, client):
            run = await client.submit(FANOUT)
            held = await place.desk.reached(8)
            place.desk.open()
            r = await client.end(run)
            print(r)
            print(daemon.log)
        print(daemon.log)
        print(len(place.hits))
