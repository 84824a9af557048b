"""Uses the client that openapi-python-client generated. The first argument is the server's URL."""

import sys

sys.path.insert(0, "client")

from framewire_client import Client
from framewire_client.api.batch import batch
from framewire_client.api.framewire import screen
from framewire_client.api.input_ import tap
from framewire_client.api.media import screenshot
from framewire_client.api.memory import read_memory, write_memory
from framewire_client.models import (
    Batch,
    NewContent,
    OpRead,
    OpReadMany,
    OpTap,
    OpWrite,
    Problem,
    Tap,
)

PNG = b"\x89PNG\r\n\x1a\n"
client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)

ops = [OpWrite(address="scratch", value=7), OpRead(address="scratch"), OpReadMany(addresses=["scratch", 0x02000100])]
done = batch.sync(client=client, body=Batch(ops=[*ops, OpTap(keys=["B"], frames=2)]))
values = [result.value for result in done.results]
assert values[:3] == [None, 7, [7, 7]], done
assert values[3]["presses"][0]["last"] == done.frame + 2, done

refused = batch.sync(client=client, body=Batch(ops=[OpRead(address="nothing")]))
assert isinstance(refused, Problem) and refused.op == 0 and "nothing" in refused.detail, refused

played = tap.sync(client=client, body=Tap(keys=["A", "Right"], frames=3), wait=True)
assert played.over.frame == played.last == played.frame + 3, played
assert played.presses[0].keys == ["A", "Right"], played

write_memory.sync("scratch", client=client, body=NewContent(value="0x2a"))
content = read_memory.sync("scratch", client=client)
assert (content.value, content.address) == (42, 0x02000100), content

assert screenshot.sync(client=client).payload.read().startswith(PNG)
assert screen.sync(client=client).payload.read().startswith(PNG)
