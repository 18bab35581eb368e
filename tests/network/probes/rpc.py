# SPDX-License-Identifier: Apache-2.0
"""gRPC without generated code. rpc.py serve PORT | rpc.py call HOST:PORT"""
import sys
from concurrent import futures

import grpc


def serve(port):
    handler = grpc.method_handlers_generic_handler("t.Test", {
        "Hello": grpc.unary_unary_rpc_method_handler(lambda request, _: b"hello " + request)})
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((handler,))
    assert server.add_insecure_port(f"[::]:{port}")
    server.start()
    print("up", flush=True)
    server.wait_for_termination()


def call(where):
    with grpc.insecure_channel(where) as channel:
        try:
            print(channel.unary_unary("/t.Test/Hello")(b"there", timeout=10).decode())
        except grpc.RpcError as e:
            sys.exit(f"{e.code()}: {e.details()}")


{"serve": serve, "call": call}[sys.argv[1]](sys.argv[2])
