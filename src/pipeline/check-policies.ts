// Asks the operator's policies about a request before any of it is sent. A policy can refuse it and cannot change it.

import type { Warning } from '../dialects/canonical/translation.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { Policy } from '../kernel/policy.ts'
import { matchesModel } from '../kernel/spend-limit.ts'
import type { Log } from '../telemetry/log.ts'
import type { PolicyCheck } from '../telemetry/request-record.ts'
import { factsOf, requestDocument } from './policy-document.ts'
import { endpointOf, type Verdict } from './policy-endpoint.ts'
import { type Admitted, Refusal } from './stages.ts'

export interface CheckPoliciesDependencies {
  readonly clock: Clock
  readonly log: Log
  readonly settings: { readonly current: { readonly policies: readonly Policy[] } }
}

/** Returns the request with a warning for each policy that should have judged it and did not, or why it is not sent. */
export async function checkPolicies(deps: CheckPoliciesDependencies, admitted: Admitted): Promise<Admitted | Refusal> {
  const policies = policiesFor(deps.settings.current.policies, admitted)
  if (policies.length === 0) return admitted
  const { exchange } = admitted
  const facts = factsOf(admitted)
  const startMs = exchange.elapsedMs()
  const judged = await Promise.all(
    policies.map(async (policy): Promise<Judged> => {
      const data = { ...facts, ...requestDocument(admitted, policy.images) }
      return await judge(deps, admitted, { policy, moment: 'request', data })
    }),
  )
  exchange.record.waitedMs += exchange.elapsedMs() - startMs
  const refusing = judged.find(isRefusing)
  if (refusing) return new Refusal(refusalBy(refusing), admitted.limits)
  const warnings = uncheckedWarnings(judged)
  return warnings.length === 0 ? admitted : { ...admitted, warnings: [...admitted.warnings, ...warnings] }
}

/** Those that concern the request. A policy for a model concerns every request that the model may serve. */
function policiesFor(policies: readonly Policy[], { caller, models }: Admitted): readonly Policy[] {
  return policies.filter(
    ({ workspaceId, projects, models: patterns }) =>
      (workspaceId === undefined || workspaceId === caller.workspaceId) &&
      (projects === undefined || projects.includes(caller.projectId)) &&
      (patterns === undefined || patterns.some((pattern) => models.some(({ id }) => matchesModel(pattern, id)))),
  )
}

interface Judged {
  readonly policy: Policy
  readonly verdict: Verdict
}

interface Question {
  readonly policy: Policy
  readonly moment: PolicyCheck['moment']
  readonly data: object
}

/** Asks one policy, and records what it says. */
async function judge(
  { clock, log }: CheckPoliciesDependencies,
  { exchange }: Admitted,
  { policy, moment, data }: Question,
): Promise<Judged> {
  const { record } = exchange
  const startMs = exchange.elapsedMs()
  const verdict = await endpointOf(policy, clock).check(`${moment}.check`, record.id, data)
  const ms = exchange.elapsedMs() - startMs
  const outcome = verdict.kind
  record.policies = [...record.policies, { policy: policy.id, moment, outcome, startMs, ms }]
  record.notes.push(noteOf(policy, moment, verdict, ms))
  if (verdict.kind === 'failed') {
    const facts = { request_id: record.id, policy: policy.id, why: verdict.why, on_failure: policy.onFailure }
    log.warn('a policy gave no verdict', facts)
  }
  return { policy, verdict }
}

function noteOf({ id, mode, onFailure }: Policy, moment: string, verdict: Verdict, ms: number): string {
  const watched = mode === 'watch' ? ', only watched' : ''
  const took = `in ${Math.round(ms)} ms`
  switch (verdict.kind) {
    case 'allowed':
      return `policy ${id} allowed the ${moment} ${took}`
    case 'blocked':
      return `policy ${id} blocked the ${moment} ${took}${watched}${reasonOf(verdict)}`
    case 'failed': {
      const passed = mode === 'watch' ? watched : onFailure === 'open' ? ', so it went on unchecked' : ''
      return `policy ${id} gave no verdict on the ${moment}${passed}: ${verdict.why}`
    }
  }
}

/** The policy's own words, if it gave any. */
function reasonOf({ code, message }: Extract<Verdict, { kind: 'blocked' }>): string {
  const said = [code, message].filter((part) => part !== undefined).join(': ')
  return said === '' ? '' : ` (${said})`
}

function isRefusing({ policy: { mode, onFailure }, verdict }: Judged): boolean {
  if (mode === 'watch') return false
  return verdict.kind === 'blocked' || (verdict.kind === 'failed' && onFailure === 'closed')
}

/** A failed call may succeed at once. */
const retrySoonMs = 1000

function refusalBy({ policy: { id }, verdict }: Judged): Failure {
  if (verdict.kind !== 'blocked') {
    const { why = '', retryMs = retrySoonMs } = verdict.kind === 'failed' ? verdict : {}
    const message = `The policy \`${id}\` of this gateway could not check the request: ${why}. It refuses what it cannot check. Nothing was sent to a provider or charged. Try again, or tell the operator.`
    return new Failure('POLICY_UNAVAILABLE', message, { retryAfterMs: retryMs, metadata: { policy: id } })
  }
  const { code, message: said } = verdict
  const reason = said === undefined ? 'It gave no reason.' : `Its reason: ${said}`
  const message = `The policy \`${id}\` of this gateway blocked the request. ${reason.replace(/[.!?]?$/, '.')} Nothing was sent to a provider or charged. Change the request, or ask the operator.`
  return new Failure('POLICY_BLOCKED', message, {
    metadata: { policy: id, ...(code !== undefined && { policy_code: code }) },
  })
}

function uncheckedWarnings(judged: readonly Judged[]): readonly Warning[] {
  return judged
    .filter(({ policy, verdict }) => verdict.kind === 'failed' && policy.mode === 'enforce')
    .map(({ policy }) => ({ code: `policy_unchecked=${policy.id}`, field: '' }))
}
