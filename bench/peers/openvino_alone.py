"""OpenVINO's own requests in one process, without a server:  openvino_alone.py async|deadline MODEL…

`async` starts each request at its moment and leaves the order to OpenVINO. `deadline` computes one at a time, uncut, the
earliest deadline first. Orders come on standard input, one in a line, as serving_client takes them, with a deadline for each
arrival; answers go to standard output.
"""

import collections
import heapq
import json
import sys
import threading
import time

import openvino
from served import Model


class Asynchronous:
    def __init__(self, models):
        self.models = models
        self.free = [collections.deque() for _ in models]
        self.answered = threading.Semaphore(0)

    def start(self, index, model, _, tell):
        compiled = self.models[model].compiled
        request = self.free[model].popleft() if self.free[model] else compiled.create_infer_request()
        request.wait()  # its last callback may not have returned

        def done(_):
            tell(index)
            self.free[model].append(request)
            self.answered.release()

        request.set_callback(done, None)
        request.start_async(self.models[model].example_inputs)

    def wait(self, count):
        for _ in range(count):
            self.answered.acquire()


class EarliestDeadline:
    def __init__(self, models):
        self.models = models
        self.queue = []
        self.changed = threading.Condition()
        self.answered = threading.Semaphore(0)
        threading.Thread(target=self.work, daemon=True).start()

    def start(self, index, model, deadline, tell):
        with self.changed:
            heapq.heappush(self.queue, (deadline, index, model, tell))
            self.changed.notify()

    def work(self):
        while True:
            with self.changed:
                while not self.queue:
                    self.changed.wait()
                _, index, model, tell = heapq.heappop(self.queue)
            self.models[model].request.infer(self.models[model].example_inputs)
            tell(index)
            self.answered.release()

    wait = Asynchronous.wait


def open_loop(policy, arrivals):
    outcomes = [[-1, 0.0]] * len(arrivals)
    begin = time.perf_counter() + 0.02

    def tell(index):
        outcomes[index] = [0, 1000 * (time.perf_counter() - begin - arrivals[index][0])]

    for index, (moment, model, *deadline) in enumerate(arrivals):
        time.sleep(max(0.0, begin + moment - time.perf_counter()))
        policy.start(index, model, deadline[0] if deadline else moment, tell)
    policy.wait(len(arrivals))
    return outcomes


def closed_loop(model, clients, seconds):
    """Each client waits for its answer in OpenVINO itself."""
    outcomes = []
    end = time.perf_counter() + seconds

    def client():
        request = model.compiled.create_infer_request()
        while (begin := time.perf_counter()) < end:
            request.infer(model.example_inputs)
            outcomes.append([0, 1000 * (time.perf_counter() - begin)])

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def main(kind, *paths):
    core = openvino.Core()
    models = [Model(path, core) for path in paths]
    for model in models:
        model.example_inputs = [openvino.Tensor(array, shared_memory=True) for array in model.example()]
    policy = {"async": Asynchronous, "deadline": EarliestDeadline}[kind](models)
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "closed" in order:
            closed = order["closed"]
            answer = closed_loop(models[0], closed["clients"], closed["seconds"])
        else:
            answer = open_loop(policy, order["arrivals"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
