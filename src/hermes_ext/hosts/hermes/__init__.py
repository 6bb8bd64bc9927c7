"""The Hermes Agent as a host: the only code here that knows Hermes.

    run_conversation ──► turns     opens the turn; transform_user_input on what was typed
      │                  inputs    what was typed, and how a rewrite goes back
      │                  titles, api_store, inbound_log  what else Hermes keeps of an input
      ├─ _build_api_kwargs ─► requests  before_llm_call once per request, injections put in
      ├─ llm execution ────► requests   what was injected is still there; answers without the model
      │                      forms      the shapes of the providers' requests and answers
      ├─ tool request ─────► tools      intercept_tool_call once per call: the verdict
      ├─ pre_tool_call ────► tools      a block becomes the result that observers see
      │                                 (newer Hermes: both inside of the tool execution)
      │                      verdicts   what was judged, until it runs
      │                      approvals  a question becomes Hermes's own approval
      ├─ tool execution ───► tools      the last gate: only what was judged runs
      │                      results    transform_tool_result on what came of it
      └─ registry.dispatch ► tools      the same gate for calls that come another way

The rooms of `adapter`: in `wraps`, `seams` lists what is wrapped and why, `attaching` wraps it, and
`lacking` says which hooks are not in force where something of it is missing; `turns`, `requests`
and `gate` (tool calls) have what happens there; `person` has what a person sees, is asked and
types; `host` has the process's runtime, `state` all that is remembered between calls.
`plugin` is the entry point that Hermes calls.
"""
