// Asks the operator's policies about a request before any of it is sent. A policy can refuse it and cannot change it.
// check-answer.ts asks them about the answer.

import type { Warning } from '../dialects/canonical/translation.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import type { Policy } from '../kernel/policy.ts'
import { matchesModel } from '../kernel/spend-limit.ts'
import type { Log } from '../telemetry/log.ts'
import type { PolicyCheck, RequestRecord } from '../telemetry/request-record.ts'
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
  const uncheckable = refuseUncheckable(deps, admitted)
  if (uncheckable) return new Refusal(uncheckable, admitted.limits)
  const policies = policiesFor(deps.settings.current.policies, admitted, 'request')
  if (policies.length === 0) return admitted
  const dataOf = ({ images }: Policy) => requestDocument(admitted, images)
  const judged = await askPolicies(deps, admitted, { policies, moment: 'request', dataOf })
  const refusing = judged.find(isRefusing)
  if (refusing) return new Refusal(refusalBy(refusing, 'request'), admitted.limits)
  const warnings = uncheckedWarnings(judged)
  return warnings.length === 0 ? admitted : { ...admitted, warnings: [...admitted.warnings, ...warnings] }
}

/** An answer is one text to a policy, so a request for several is refused before it costs anything. */
function refuseUncheckable({ settings }: CheckPoliciesDependencies, admitted: Admitted): Failure | undefined {
  if (admitted.envelope.choices <= 1) return undefined
  const policies = policiesFor(settings.current.policies, admitted, 'answer')
  const strict = policies.find(({ mode, onFailure }) => mode === 'enforce' && onFailure === 'closed')
  if (!strict) return undefined
  return invalidRequest(
    `The policy \`${strict.id}\` of this gateway checks answers, and can check only one for each request. Ask for one answer (\`n\`, \`candidateCount\`), several times if needed.`,
    'n',
  )
}

/** Those that concern the request. A policy for a model concerns every request that the model may serve. */
export function policiesFor(
  policies: readonly Policy[],
  { caller, models }: Admitted,
  moment: PolicyCheck['moment'],
): readonly Policy[] {
  return policies.filter(
    ({ when, workspaceId, projects, models: patterns }) =>
      (when === moment || when === 'both') &&
      (workspaceId === undefined || workspaceId === caller.workspaceId) &&
      (projects === undefined || projects.includes(caller.projectId)) &&
      (patterns === undefined || patterns.some((pattern) => models.some(({ id }) => matchesModel(pattern, id)))),
  )
}

export interface Judged {
  readonly policy: Policy
  readonly verdict: Verdict
}

export interface Question {
  readonly policies: readonly Policy[]
  readonly moment: PolicyCheck['moment']
  /** What is judged, for each of them. */
  dataOf(policy: Policy): object
}

/** Asks all at the same time. */
export async function askPolicies(
  { clock, log }: CheckPoliciesDependencies,
  admitted: Admitted,
  { policies, moment, dataOf }: Question,
): Promise<readonly Judged[]> {
  const { exchange } = admitted
  const { record } = exchange
  const facts = factsOf(admitted)
  const startMs = exchange.elapsedMs()
  const judged = await Promise.all(
    policies.map(async (policy): Promise<Judged> => {
      const data = { ...facts, ...dataOf(policy) }
      const verdict = await endpointOf(policy, clock).check(`${moment}.check`, record.id, data)
      recordVerdict(
        log,
        record,
        { policy: policy.id, moment, startMs, ms: exchange.elapsedMs() - startMs },
        { policy, verdict },
      )
      return { policy, verdict }
    }),
  )
  record.waitedMs += exchange.elapsedMs() - startMs
  return judged
}

export function recordVerdict(
  log: Log,
  record: RequestRecord,
  asked: Omit<PolicyCheck, 'outcome'>,
  { policy, verdict }: Judged,
): void {
  record.policies = [...record.policies, { ...asked, outcome: verdict.kind }]
  record.notes.push(noteOf(policy, asked.moment, verdict, asked.ms))
  if (verdict.kind !== 'failed') return
  const facts = { request_id: record.id, policy: policy.id, why: verdict.why, on_failure: policy.onFailure }
  log.warn('a policy gave no verdict', facts)
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

export function isRefusing({ policy: { mode, onFailure }, verdict }: Judged): boolean {
  if (mode === 'watch') return false
  return verdict.kind === 'blocked' || (verdict.kind === 'failed' && onFailure === 'closed')
}

/** A failed call may succeed at once. */
const retrySoonMs = 1000

const untouched = 'Nothing was sent to a provider or charged.'

/** Also the words of an answer that is held back: its model has been paid, so it is not repeated. */
export function refusalBy({ policy: { id }, verdict }: Judged, moment: PolicyCheck['moment']): Failure {
  const isAnswer = moment === 'answer'
  if (verdict.kind !== 'blocked') {
    const { why = '', retryMs = retrySoonMs } = verdict.kind === 'failed' ? verdict : {}
    const then = isAnswer ? 'Tell the operator.' : `${untouched} Try again, or tell the operator.`
    const message = `The policy \`${id}\` of this gateway could not check the ${moment}: ${why}. It refuses what it cannot check. ${then}`
    return new Failure('POLICY_UNAVAILABLE', message, { retryAfterMs: retryMs, metadata: { policy: id } })
  }
  const { code, message: said } = verdict
  const reason = said === undefined ? 'It gave no reason.' : `Its reason: ${said}`
  const then = isAnswer ? 'Ask the operator.' : `${untouched} Change the request, or ask the operator.`
  const message = `The policy \`${id}\` of this gateway blocked the ${moment}. ${reason.replace(/[.!?]?$/, '.')} ${then}`
  return new Failure('POLICY_BLOCKED', message, {
    metadata: { policy: id, ...(code !== undefined && { policy_code: code }) },
  })
}

export function uncheckedWarnings(judged: readonly Judged[]): readonly Warning[] {
  return judged
    .filter(
      ({ policy, verdict }) => verdict.kind === 'failed' && policy.mode === 'enforce' && policy.onFailure === 'open',
    )
    .map(({ policy }) => ({ code: `policy_unchecked=${policy.id}`, field: '' }))
}
