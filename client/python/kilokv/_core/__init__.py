"""What the synchronous and the asynchronous client share. It has no input and output of its own.

A call is a generator. It yields steps (steps.py): a call of gRPC, or a pause. The client performs each step, in its own
way, and sends the answer back, or throws the error into the generator. What the generator returns is the answer for the
user.
"""
