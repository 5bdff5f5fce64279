"""A plan as it travels in manifests: digest and shards (compiler/plan/storage/plan_shards.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.plan.reader import Plan
from compiler.plan.storage import plan_shards
from compiler.plan.storage.plan_shards import SHARD_BYTES, unpack

__all__ = ["SHARD_BYTES", "Bundle", "make", "unpack"]


@dataclass(frozen=True, slots=True)
class Bundle:
    plan: Plan
    digest: str
    shards: Mapping[str, bytes]  # 'plan-000', 'plan-001', ...: at most SHARD_BYTES each
    slim: bool  # without what agents compute again


def make(plan: Plan, *, slim: bool = False) -> Bundle:
    """Raises PlanError where the plan is damaged, or too large to be carried."""
    files = {name: plan.raw(name) for name in plan.names}
    return Bundle(plan, plan.digest, plan_shards.pack(files, slim=slim), slim)
