"""The HTTP API: what clients may ask of the daemon, over its unix socket (architecture.md, section 7).

Handlers translate; the service decides. The OpenAPI document is at /schema/openapi.json.
"""

import re
from collections.abc import AsyncIterator
from functools import partial
from importlib.metadata import version
from typing import Any, TypeAlias

import anyio.to_thread
import msgspec
import structlog
from litestar import Litestar, MediaType, Response, get, post
from litestar import Request as HttpRequest
from litestar.di import NamedDependency, Provide
from litestar.exceptions import HTTPException
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import Stream
from litestar.status_codes import HTTP_413_REQUEST_ENTITY_TOO_LARGE

from tallystick.contract.errors import TallyError, UsageError
from tallystick.contract.events import ErrorInfo
from tallystick.contract.identity import Identity
from tallystick.engine import costs, reports
from tallystick.engine.authoring.messages import (
    AuthorRequest,
    CandidateReport,
    RepairRequest,
    SkillDocument,
    WritingReport,
)
from tallystick.engine.files import MAX_FILE
from tallystick.engine.host import Host
from tallystick.engine.messages import (
    Artifact,
    AttemptReport,
    BudgetRequest,
    CapabilityInfo,
    CertificateReport,
    CheckReport,
    CheckRequest,
    DoctorReport,
    ErrorBody,
    Explanation,
    GateReport,
    GateRequest,
    PlanReport,
    PlanRequest,
    Progress,
    ReconcileRequest,
    ResumeRequest,
    RetireRequest,
    RunLine,
    RunReport,
    RunRequest,
    Source,
    Status,
)
from tallystick.engine.money_messages import (
    ApprovalRequest,
    CostReport,
    FileReference,
    SweepReport,
    SweepRequest,
    WaitingCall,
)
from tallystick.kernel import KernelError

MAX_BODY = 8 << 20
_FILES = "/v1/files"
_STATUS = {"TS-U": 400, "TS-C": 422, "TS-G": 422, "TS-D": 409, "TS-A": 409, "TS-P": 409, "TS-S": 503, "TS-N": 503}
_UNKNOWN_RUN = "TS-U002"
_FILE_NAME = re.compile(r"[0-9a-f]{64}")
_SEE_SCHEMA = "the daemon's /schema/openapi.json describes every request"

#: The running daemon, which every handler is given.
ThisHost: TypeAlias = NamedDependency[Host]

log = structlog.get_logger("tallystick.api")

_REFUSALS = {
    number: ResponseSpec(ErrorBody, description="Refused: a stable code, what happened, what to do next")
    for number in sorted({404, 413, *_STATUS.values()})
}
_get, _post = partial(get, responses=_REFUSALS), partial(post, responses=_REFUSALS)


@_get("/v1/status")
async def status(host: ThisHost) -> Status:
    """Tell how the daemon stands."""
    return await host.status()


@_get("/v1/doctor")
async def doctor(host: ThisHost) -> DoctorReport:
    """Look at every part."""
    return await host.doctor.examine()


@_post("/v1/shutdown", status_code=202)
async def shutdown(host: ThisHost) -> Status:
    """Begin an orderly stop."""
    answer = await host.status()
    host.shutdown()
    return answer


@_get("/v1/capabilities")
async def capabilities(host: ThisHost) -> list[CapabilityInfo]:
    """List the catalogue."""
    return host.capabilities()


@_post("/v1/check", status_code=200)
async def check(host: ThisHost, data: JSONBody[CheckRequest]) -> CheckReport:
    """Check a script without running it."""
    return await host.service.check(data)


@_post("/v1/runs", status_code=201)
async def submit(host: ThisHost, data: JSONBody[RunRequest]) -> RunReport:
    """Start a run."""
    return await host.service.submit(data)


@_get("/v1/runs")
async def runs(host: ThisHost, limit: FromQuery[int] = 50, before: FromQuery[str | None] = None) -> list[RunLine]:
    """List runs, newest first."""
    below = None if before is None else host.service.library.resolve(before)
    rows = await anyio.to_thread.run_sync(host.service.journal.store.rows, max(1, min(limit, 10_000)), below)
    live = host.service.launches.live
    return [reports.run_line(row, live.get(row.run)) for row in rows]


@_get("/v1/runs/{run:str}")
async def show(host: ThisHost, run: FromPath[str]) -> RunReport:
    """Report a run."""
    return await host.service.report(host.service.library.resolve(run))


@_get("/v1/runs/{run:str}/source")
async def source(host: ThisHost, run: FromPath[str], revision: FromQuery[int | None] = None) -> Source:
    """Return the script of a revision, that of the latest launch by default."""
    history = await host.service.library.history(host.service.library.resolve(run))
    number = history.revision.revision if revision is None else revision
    if number not in history.revisions:
        raise UsageError(f"run {history.run} has no revision {number}; it has 0 to {len(history.revisions) - 1}")
    found = history.revisions[number]
    return Source(found.revision, found.source, found.args)


@_post("/v1/runs/{run:str}/gate", status_code=200)
async def gate(host: ThisHost, run: FromPath[str], data: JSONBody[GateRequest]) -> GateReport:
    """Hold a rewrite against what is committed."""
    return await host.service.gate(host.service.library.resolve(run), data)


@_post("/v1/runs/{run:str}/plan", status_code=200)
async def plan(host: ThisHost, run: FromPath[str], data: JSONBody[PlanRequest]) -> PlanReport:
    """Say what a resume would do, without spending anything."""
    return await host.service.plan(host.service.library.resolve(run), data)


@_post("/v1/runs/{run:str}/resume", status_code=201)
async def resume(host: ThisHost, run: FromPath[str], data: JSONBody[ResumeRequest]) -> RunReport:
    """Go on with a run."""
    return await host.service.resume(host.service.library.resolve(run), data)


@_post("/v1/runs/{run:str}/cancel", status_code=202)
async def cancel(host: ThisHost, run: FromPath[str]) -> RunReport:
    """End the live launch of a run."""
    return await host.service.cancel(host.service.library.resolve(run), "its user")


@_post("/v1/runs/{run:str}/budget", status_code=200)
async def budget(host: ThisHost, run: FromPath[str], data: JSONBody[BudgetRequest]) -> RunReport:
    """Set another budget for a run."""
    return await host.budgets.change(host.service.library.resolve(run), data)


@_get("/v1/skill")
async def skill(host: ThisHost) -> SkillDocument:
    """Return the document that a model needs to write scripts."""
    return host.service.authoring.skill()


@_post("/v1/author", status_code=202)
async def author(host: ThisHost, data: JSONBody[AuthorRequest]) -> WritingReport:
    """Have a model write a script, as a run that nobody has launched yet."""
    return await host.service.authoring.author(data)


@_post("/v1/runs/{run:str}/repair", status_code=202)
async def repair(host: ThisHost, run: FromPath[str], data: JSONBody[RepairRequest]) -> WritingReport:
    """Have a model repair the script of a run; nothing is started."""
    return await host.service.authoring.repair(host.service.library.resolve(run), data)


@_get("/v1/runs/{run:str}/repair")
async def repaired(host: ThisHost, run: FromPath[str], candidate: FromQuery[int | None] = None) -> WritingReport:
    """Report what a model has written or repaired lately, or does; or one candidate of any time."""
    return await host.service.authoring.report(host.service.library.resolve(run), candidate)


@_get("/v1/runs/{run:str}/candidates")
async def candidates(host: ThisHost, run: FromPath[str]) -> list[CandidateReport]:
    """List the scripts that models were asked for, with verdicts and costs."""
    return await host.service.authoring.candidates(host.service.library.resolve(run))


@_get("/v1/runs/{run:str}/attempts")
async def attempts(host: ThisHost, run: FromPath[str]) -> list[AttemptReport]:
    """List the attempts of a run."""
    return await host.operator.attempts(host.service.library.resolve(run))


@_post("/v1/runs/{run:str}/attempts/{attempt:int}/reconcile", status_code=200)
async def reconcile(
    host: ThisHost, run: FromPath[str], attempt: FromPath[int], data: JSONBody[ReconcileRequest]
) -> AttemptReport:
    """Settle an attempt by hand."""
    return await host.operator.reconcile(host.service.library.resolve(run), attempt, data)


@_get("/v1/runs/{run:str}/cost")
async def cost(host: ThisHost, run: FromPath[str]) -> CostReport:
    """Say what a run has cost: by capability, site, outcome and launch."""
    found = host.service.library.resolve(run)
    return costs.cost_report(await host.service.library.history(found), host.service.launches.live.get(found))


@_get("/v1/runs/{run:str}/approvals")
async def approvals(host: ThisHost, run: FromPath[str]) -> list[WaitingCall]:
    """List the calls that a run waits for."""
    return await host.approver.waiting(host.service.library.resolve(run))


@_post("/v1/runs/{run:str}/approvals", status_code=200)
async def approve(host: ThisHost, run: FromPath[str], data: JSONBody[ApprovalRequest]) -> WaitingCall:
    """Approve of a call that waits, once, or deny it."""
    return await host.approver.decide(host.service.library.resolve(run), data)


@_get("/v1/runs/{run:str}/certificate")
async def certificate(host: ThisHost, run: FromPath[str], verify: FromQuery[bool] = False) -> CertificateReport:
    """Return the latest certificate; with ``verify``, recompute all of them."""
    return await host.inquiry.certificate(host.service.library.resolve(run), check=verify)


@_get("/v1/runs/{run:str}/explain")
async def explain(host: ThisHost, run: FromPath[str], identity: FromQuery[str]) -> Explanation:
    """Say what became of one call, and why."""
    try:
        wanted = Identity.parse(identity)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return await host.inquiry.explain(host.service.library.resolve(run), wanted)


@_post("/v1/runs/{run:str}/retire", status_code=200)
async def retire(host: ThisHost, run: FromPath[str], data: JSONBody[RetireRequest]) -> RunReport:
    """Release a frozen site from the gate."""
    found = host.service.library.resolve(run)
    await host.operator.retire(found, data)
    return await host.service.report(found)


@_get("/v1/runs/{run:str}/artifacts")
async def artifacts(host: ThisHost, run: FromPath[str]) -> list[Artifact]:
    """List the files of a run."""
    return reports.artifacts(await host.service.library.history(host.service.library.resolve(run)))


@get(
    "/v1/runs/{run:str}/events",
    media_type="text/event-stream",
    responses={
        **_REFUSALS,
        200: ResponseSpec(Progress, description="One event a line", media_type="text/event-stream"),
    },
)
async def events(host: ThisHost, run: FromPath[str]) -> Stream:
    """Stream a run's progress as server-sent events until its launch has ended."""
    found = host.service.library.resolve(run)

    async def lines() -> AsyncIterator[bytes]:
        async for line in host.service.watch(found):
            yield b"event: " + line.kind.encode() + b"\ndata: " + msgspec.json.encode(line) + b"\n\n"

    return Stream(lines(), media_type="text/event-stream")


@_get("/v1/files/{sha256:str}", media_type="application/octet-stream")
async def file(host: ThisHost, sha256: FromPath[str]) -> Response[bytes]:
    """Return the bytes of an artifact."""
    if not _FILE_NAME.fullmatch(sha256):
        raise UsageError(f"{sha256[:80]!r} names no file: a name is 64 hexadecimal digits, in lower case")
    data = await anyio.to_thread.run_sync(host.service.journal.store.get_file, sha256)
    return Response(data, media_type="application/octet-stream")


@_post(
    "/v1/files",
    status_code=201,
    request_max_body_size=MAX_FILE,
)
async def add_file(
    host: ThisHost, request: HttpRequest[Any, Any, Any], media_type: FromQuery[str | None] = None
) -> FileReference:
    """Keep the body as a file: by its content, of the type that is named or else of what its first bytes say."""
    return await host.files.add(await request.body(), media_type)


@_post("/v1/sweep", status_code=200)
async def sweep(host: ThisHost, data: JSONBody[SweepRequest]) -> SweepReport:
    """Remove the files that nothing names."""
    return await host.files.sweep(data)


def _body(info: ErrorInfo, status_code: int, details: Any = None) -> Response[ErrorBody]:
    return Response(ErrorBody(info, details), status_code=status_code, media_type=MediaType.JSON)


def _on_tally_error(_: HttpRequest[Any, Any, Any], error: TallyError) -> Response[ErrorBody]:
    status_code = 404 if error.code == _UNKNOWN_RUN else _STATUS.get(error.code[:4], 500)
    return _body(ErrorInfo(error.code, error.message, error.hint), status_code, error.details)


def _on_kernel_error(_: HttpRequest[Any, Any, Any], error: KernelError) -> Response[ErrorBody]:
    info = ErrorInfo("TS-N004", f"a part of the daemon did not answer: {error}", "try again; tally doctor looks at it")
    return _body(info, 503)


def _on_http_error(request: HttpRequest[Any, Any, Any], error: HTTPException) -> Response[ErrorBody]:
    if error.status_code == HTTP_413_REQUEST_ENTITY_TOO_LARGE:
        limit = MAX_FILE if request.url.path == _FILES else MAX_BODY
        info = ErrorInfo(
            "TS-U001",
            f"the request is larger than {limit >> 20} MiB; nothing was started",
            "pass large data as artifacts, by reference",
        )
        return _body(info, error.status_code)
    found = error.extra if isinstance(error.extra, list) else []
    wrong = [": ".join(filter(None, (item.get("key"), item.get("message")))) for item in found] or [error.detail]
    info = ErrorInfo("TS-U001", f"the request was not understood: {'; '.join(wrong)}", _SEE_SCHEMA)
    return _body(info, error.status_code)


def _on_deep_nesting(_: HttpRequest[Any, Any, Any], __: RecursionError) -> Response[ErrorBody]:
    return _body(ErrorInfo("TS-U001", "the request was not understood: it is nested too deep", _SEE_SCHEMA), 400)


def _on_fault(request: HttpRequest[Any, Any, Any], error: Exception) -> Response[ErrorBody]:
    log.error("request_failed", method=request.method, path=request.url.path, exc_info=error)
    info = ErrorInfo(
        TallyError.code,
        f"tallystick has a fault: this request failed with {type(error).__name__}",
        "what was journalled is kept; tally daemon logs has the details to report",
    )
    return _body(info, 500)


def create_app(host: Host) -> Litestar:
    """Build the API of a running daemon."""

    async def provide_host() -> Host:
        return host

    return Litestar(
        route_handlers=[
            status,
            doctor,
            shutdown,
            capabilities,
            check,
            submit,
            runs,
            show,
            source,
            gate,
            plan,
            resume,
            cancel,
            skill,
            author,
            repair,
            repaired,
            candidates,
            budget,
            attempts,
            reconcile,
            cost,
            approvals,
            approve,
            certificate,
            explain,
            retire,
            artifacts,
            events,
            file,
            add_file,
            sweep,
        ],
        dependencies={"host": Provide(provide_host)},
        exception_handlers={
            TallyError: _on_tally_error,
            KernelError: _on_kernel_error,
            HTTPException: _on_http_error,
            RecursionError: _on_deep_nesting,
            Exception: _on_fault,
        },
        openapi_config=OpenAPIConfig(
            title="tallystick",
            version=version("tallystick"),
            render_plugins=[JsonRenderPlugin()],
            use_handler_docstrings=True,
        ),
        request_max_body_size=MAX_BODY,
        signature_namespace={"Host": Host},
        logging_config=None,
    )
