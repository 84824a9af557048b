"""Uses the client that openapi-generator generated. The first argument is the server's URL."""

import sys

sys.path.insert(0, "client")

from openapi_client import ApiClient, BatchApi, Configuration, FramewireApi, InputApi, MediaApi, MemoryApi
from openapi_client.exceptions import BadRequestException
from openapi_client.models import Address, Batch, BatchOp, Keys, NewContent, OpRead, OpTap, OpWrite, Tap, Value

PNG = b"\x89PNG\r\n\x1a\n"
client = ApiClient(Configuration(host=sys.argv[1]))

scratch = Address("scratch")
ops = [
    OpWrite(op="write", address=scratch, value=Value(7)),
    OpRead(op="read", address=scratch),
    OpTap(op="tap", keys=Keys(["B"]), frames=2),
]
done = BatchApi(client).batch(Batch(ops=[BatchOp(op) for op in ops]))
values = [result.actual_instance.value for result in done.results]
assert values[:2] == [None, 7], done
assert values[2]["presses"][0]["last"] == done.frame + 2, done

try:
    BatchApi(client).batch(Batch(ops=[BatchOp(OpRead(op="read", address=Address("nothing")))]))
    raise AssertionError("an unknown symbol was read")
except BadRequestException as refused:
    assert refused.data.op == 0 and "nothing" in refused.data.detail, refused

played = InputApi(client).tap(tap=Tap(keys=Keys(["A", "Right"]), frames=3), wait=True)
assert played.over.frame == played.last == played.frame + 3, played

MemoryApi(client).write_memory("scratch", NewContent(value=Value("0x2a")))
assert MemoryApi(client).read_memory("scratch").value == 42

assert bytes(MediaApi(client).screenshot()).startswith(PNG)
assert bytes(FramewireApi(client).screen()).startswith(PNG)
