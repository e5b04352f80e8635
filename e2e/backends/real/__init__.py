"""The backend `real`: real API servers and both operators as processes, one stack per session.

It shows what the simulation cannot: real Kubernetes, Karmada, TLS, credentials and process exits.

```
scheduler.py        runs scenarios, most side by side and some alone, and evaluates oracles
ordering.py         the order of scenarios in a session
backend.py          the `Backend` protocol for one scenario
users.py            requests of a scenario's users
environment.py      the stack of a session with everything installed on it
installing.py       applies deploy/ to every plane and issues credentials
replicas.py         operators as processes: started, stopped, killed, frozen, restarted
programs.py         the operators' executables: of this environment, or of wheels built for the run
links.py            links between operators and planes, which a scenario cuts or slows
external.py         provider, NSO and metrics of Pods in the cells
recording.py        every version of every object, recorded by watches
auditing.py         requests to planes, read from their audit logs
oracles.py          the oracles of `docs/spec/faults.md` 5
background_loop.py  the thread that runs links, external controllers and recorders
```
"""
