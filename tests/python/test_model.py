"""Two clients and several resources against a model of the holders; nodes are killed and started on the way."""

import time

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import libredlock
from libredlock.testing import eventually
from patience import GENEROUS_TIMEOUTS, connected

CLIENTS, RESOURCES = ("one", "two"), ("a", "b", "c")
whose, what = st.sampled_from(CLIENTS), st.sampled_from(RESOURCES)
LONG, SHORT = 25, 0.15
BEFORE_LAPSE_S = 20  # shorter than LONG: what is gone by then did not lapse


class Model(RuleBasedStateMachine):
    """A lock held in the model is held by the library, and by no other client."""

    nodes = None

    @initialize()
    def open(self):
        self.nodes.reset()
        options = {"ttl": LONG, **GENEROUS_TIMEOUTS}
        self.clients = {name: connected(libredlock.Client(self.nodes.urls, **options)) for name in CLIENTS}
        self.locks = {(c, r): self.clients[c].lock(r) for c in CLIENTS for r in RESOURCES}
        self.holder, self.adopted = {}, {}
        self.dead = None

    @rule(client=whose, resource=what)
    def acquire(self, client, resource):
        lock = self.locks[client, resource]
        expected = resource not in self.holder
        assert bool(lock.acquire(blocking=False)) is expected
        if expected:
            self.holder[resource] = client
        self.settle(resource)

    @rule(client=whose, resource=what)
    def release(self, client, resource):
        lock = self.held(client, resource)
        if self.holder.get(resource) == client:
            lock.release()
            del self.holder[resource]
            self.settle(resource)
        else:
            with pytest.raises(libredlock.NotHeld):
                lock.release()

    def held(self, client, resource):
        """What the client acts on: a hold that it has adopted, or its lock."""
        adopted = self.adopted.get((client, resource))
        return adopted if adopted is not None and adopted.locked() else self.locks[client, resource]

    def settle(self, resource):
        """A majority decides; what the other nodes have still to do, a node's end would lay open."""
        holder = self.holder.get(resource)
        token = self.held(holder, resource).token.encode() if holder else None
        alive = [node for node in self.nodes if node.alive]
        eventually(lambda: {node.get(resource) for node in alive} <= {token, None}, BEFORE_LAPSE_S,
                   "only the holder has keys")

    @rule(client=whose, resource=what)
    def extend(self, client, resource):
        lock = self.held(client, resource)
        if self.holder.get(resource) == client:
            before = time.monotonic() + lock.remaining
            lock.extend()
            assert time.monotonic() + lock.remaining > before - 0.002
        else:
            with pytest.raises(libredlock.NotHeld):
                lock.extend()

    @rule(client=whose, resource=what)
    def expire(self, client, resource):
        if resource in self.holder:
            return
        lock = self.clients[client].lock(resource, ttl=SHORT, node_timeout="auto")
        assert lock.acquire(timeout=60)
        eventually(lambda: lock.lost, 30)
        with pytest.raises(libredlock.Lost):
            lock.extend()
        with pytest.raises(libredlock.Lost):
            lock.release()
        self.settle(resource)

    @rule(resource=what, client=whose)
    def hand_over(self, resource, client):
        if resource not in self.holder:
            return
        self.clients[self.holder[resource]].status(resource)  # asks every node behind the requests of acquire
        token = self.held(self.holder[resource], resource).detach()
        taken = self.clients[client].adopt(resource, token)
        taken.extend()
        self.holder[resource], self.adopted[client, resource] = client, taken

    @precondition(lambda self: self.dead is None)
    @rule(index=st.integers(0, 4))
    def kill(self, index):
        # A lock whose keys are on fewer than four nodes may not survive the loss of one.
        for resource, client in list(self.holder.items()):
            if len(self.nodes.keys().get(resource.encode(), ())) < 4:
                self.release(client, resource)
        self.dead = index
        self.nodes[index].kill()

    @precondition(lambda self: self.dead is not None)
    @rule()
    def start(self):
        node, self.dead = self.nodes[self.dead], None
        node.start()
        self.nodes.bootstrap()  # the locks of the model are on enough of the other nodes
        for client in self.clients.values():
            eventually(lambda client=client: client.status("ready").votes[node.name].words == "free", 30)

    @rule(client=whose, resource=what)
    def ask(self, client, resource):
        report = self.clients[client].status(resource)
        if resource in self.holder:
            assert report.verdict == "held"
            assert report.token == self.held(self.holder[resource], resource).token
        else:
            assert report.verdict != "held"

    @invariant()
    def each_lock_knows_whether_it_is_held(self):
        for client, resource in getattr(self, "locks", {}):
            lock = self.held(client, resource)
            held = self.holder.get(resource) == client
            assert lock.owned() is held and lock.locked() is held
            assert (lock.remaining > 0) is held

    def teardown(self):
        for client in getattr(self, "clients", {}).values():
            client.close()
        if getattr(self, "clients", None):
            self.nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.timeout(1200)
def test_random_histories_agree_with_the_model(nodes):
    Model.nodes = nodes
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        Model, settings=settings(max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=checks)
    )
