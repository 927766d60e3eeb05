"""Progress of steps on a terminal, or line by line where there is none."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from kilonova.cloud.steps import Step


class Terminal:
    """One bar for the whole, the running steps beside it, and a line for each that has ended."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.begin = time.monotonic()
        self.running: list[str] = []
        self.told: set[str] = set()
        self.lock = threading.Lock()
        columns = (
            SpinnerColumn(),
            BarColumn(24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        self.progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.task = self.progress.add_task("")

    def plan(self, steps: Sequence[Step]) -> None:
        self.progress.update(self.task, total=len(steps))
        self.progress.start()

    def close(self) -> None:
        self.progress.stop()

    def started(self, step: Step) -> None:
        with self.lock:
            self.running.append(step.name)
        self.describe()

    def finished(self, step: Step, seconds: float) -> None:
        self.ended(step)
        if seconds >= 0.05:
            self.line("[green]✓[/green]", f"{step.name} [dim]{seconds:.1f} s[/dim]")

    def skipped(self, step: Step) -> None:
        self.ended(step)

    def lasting(self, steps: Sequence[Step]) -> None:
        """A terminal shows by itself what runs, but not why it takes so long."""
        told = [step for step in steps if step.note and step.name not in self.told]
        self.told.update(step.name for step in told)
        for step in told:
            self.line("…", f"{step.name}: {step.note}")
        others = [step.name for step in steps if step not in told]
        if others and not self.console.is_terminal:
            self.line("…", f"[dim]still at work:[/dim] {', '.join(others)}")

    def failed(self, step: Step, error: BaseException) -> None:
        self.ended(step)
        self.line(
            "[red]✗[/red]", f"{step.name}: {escape(str(error).splitlines()[0])} [dim](ending what has begun)[/dim]"
        )

    def ended(self, step: Step) -> None:
        with self.lock:
            if step.name in self.running:
                self.running.remove(step.name)
        self.progress.advance(self.task)
        self.describe()

    def describe(self) -> None:
        with self.lock:
            self.progress.update(self.task, description="[dim]" + ", ".join(self.running)[:80] + "[/dim]")

    def line(self, mark: str, text: str) -> None:
        self.console.print(
            f"[dim]{time.monotonic() - self.begin:6.1f} s[/dim] {mark} {text}", highlight=False, soft_wrap=True
        )
