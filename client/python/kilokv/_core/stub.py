"""Methods for messages that are encoded in part."""

from __future__ import annotations

from typing import Any

from kilokv.v1 import kilokv_pb2 as pb
from kilokv.v1 import kilokv_pb2_grpc


def make_stub(channel: Any) -> Any:
    """The stub of the service. Its Execute, and a method ExecuteColumns for ExecuteBatch, take an EncodedRequest, too:
    gRPC's stubs take messages of protobuf only. It works with both kinds of channels."""
    stub = kilokv_pb2_grpc.KiloKVStub(channel)
    stub.Execute = channel.unary_unary("/kilokv.v1.KiloKV/Execute", request_serializer=_serialize,
                                       response_deserializer=pb.ExecuteResponse.FromString)
    stub.ExecuteColumns = channel.unary_stream("/kilokv.v1.KiloKV/ExecuteBatch", request_serializer=_serialize,
                                               response_deserializer=pb.ExecuteBatchResponse.FromString)
    return stub


def _serialize(request: Any) -> bytes:
    return request.SerializeToString()  # type: ignore[no-any-return]
