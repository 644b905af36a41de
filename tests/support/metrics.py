"""The names of all metrics of fencer's own: what rules, dashboards and documentation may name."""

NAMES = (
    "fencer_build_info",
    "fencer_armed",
    "fencer_leader",
    "fencer_endpoint_up",
    "fencer_last_success_timestamp_seconds",
    "fencer_passes_total",
    "fencer_node_verdict",
    "fencer_node_fenced",
    "fencer_fence_duration_seconds",
    "fencer_actions_total",
    "fencer_refusals_total",
    "fencer_unproven_bindings",
    "fencer_brake_active",
    "fencer_token_expiry_timestamp_seconds",
)
