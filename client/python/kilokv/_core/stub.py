"""A method for messages that are encoded already."""

from __future__ import annotations

from typing import Any

from kilokv.v1 import kilokv_pb2 as pb


def columns_method(channel: Any) -> Any:
    """ExecuteBatch for a request that is no message of protobuf, but can be serialized (columns.py). gRPC's stubs take
    messages only. It works with both kinds of channels."""
    return channel.unary_stream("/kilokv.v1.KiloKV/ExecuteBatch",
                                request_serializer=lambda request: request.SerializeToString(),
                                response_deserializer=pb.ExecuteBatchResponse.FromString)
