// Asks a policy's endpoint for a verdict: signed as alerts are, timed, with a circuit breaker, and with a memory of its last
// verdicts. It never throws: an endpoint that gives no verdict is a failure, and the policy says what that means.

import { createHash } from 'node:crypto'
import { signedHeaders } from '../alerts/webhooks.ts'
import { recordOf, textOf, wordOf } from '../dialects/canonical/json.ts'
import { type Clock, isoTime } from '../kernel/clock.ts'
import type { Policy } from '../kernel/policy.ts'
import { createEgressGuard, createGuardedTransport, EgressRefusal } from '../providers/egress/egress-guard.ts'
import type { Transport } from '../providers/provider.ts'
import { readResponseBody } from '../wire/read-body.ts'

export type Verdict =
  | { readonly kind: 'allowed' }
  | {
      readonly kind: 'blocked'
      /** The policy's own; undefined = it gave none. */
      readonly code: string | undefined
      readonly message: string | undefined
    }
  /** `retryMs`: when it is called again, if it is not called now. */
  | { readonly kind: 'failed'; readonly why: string; readonly retryMs?: number }

export type CheckType = 'request.check' | 'answer.check'

/** Failures in a row after which an endpoint is not called for a while. */
const failuresMax = 5
const restMs = 5_000
const rememberMs = 60_000
const rememberedMax = 1_000
const verdictBytesMax = 64 * 1024
const messageMax = 500

/** One for each policy of the configuration in force; a changed configuration has new ones. */
const endpoints = new WeakMap<Policy, PolicyEndpoint>()

export function endpointOf(policy: Policy, clock: Clock): PolicyEndpoint {
  let endpoint = endpoints.get(policy)
  if (!endpoint) {
    endpoint = new PolicyEndpoint(policy, clock)
    endpoints.set(policy, endpoint)
  }
  return endpoint
}

export class PolicyEndpoint {
  readonly #transport: Transport
  readonly #remembered = new Map<string, { readonly verdict: Verdict; readonly untilMs: number }>()
  #failures = 0
  #restsUntilMs = 0

  constructor(
    private readonly policy: Policy,
    private readonly clock: Clock,
  ) {
    const { url } = policy
    // The configuration file is the operator's: it may name a host that is not public. Cloud metadata is never called.
    const host = URL.parse(url)?.hostname.replace(/^\[|\]$/g, '') ?? ''
    this.#transport = createGuardedTransport(createEgressGuard({ allow: [host], setting: 'policies', clock }), url)
  }

  /** `id`: identifies this check to the endpoint. `data`: what decides the verdict. */
  async check(type: CheckType, id: string, data: object): Promise<Verdict> {
    const content = JSON.stringify(data)
    const key = createHash('sha256').update(type).update('\n').update(content).digest('base64url')
    const nowMs = this.clock.monotonicMs()
    const known = this.#remembered.get(key)
    if (known && nowMs < known.untilMs) return known.verdict
    if (nowMs < this.#restsUntilMs) {
      const retryMs = this.#restsUntilMs - nowMs
      return { kind: 'failed', why: `it has failed ${this.#failures} times in a row and is not called now`, retryMs }
    }
    // Others fail while this call finds out whether the endpoint works again.
    if (this.#failures >= failuresMax) this.#restsUntilMs = nowMs + restMs
    const body = `{"type":"${type}","id":${JSON.stringify(id)},"timestamp":"${isoTime(this.clock.now())}","data":${content}}`
    const verdict = await this.#call(id, body)
    this.#note(verdict)
    if (verdict.kind !== 'failed') this.#remember(key, verdict)
    return verdict
  }

  #note({ kind }: Verdict): void {
    this.#failures = kind === 'failed' ? this.#failures + 1 : 0
    this.#restsUntilMs = this.#failures >= failuresMax ? this.clock.monotonicMs() + restMs : 0
  }

  #remember(key: string, verdict: Verdict): void {
    this.#remembered.delete(key)
    this.#remembered.set(key, { verdict, untilMs: this.clock.monotonicMs() + rememberMs })
    const oldest = this.#remembered.keys().next()
    if (this.#remembered.size > rememberedMax && !oldest.done) this.#remembered.delete(oldest.value)
  }

  async #call(id: string, body: string): Promise<Verdict> {
    const { secret, timeoutMs } = this.policy
    const headers = signedHeaders(id, Math.floor(this.clock.now() / 1000), body, [secret.reveal()])
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      const bytes = new TextEncoder().encode(body)
      const response = await this.#transport({ path: '', headers, body: bytes, signal })
      const answer = await readResponseBody(response, verdictBytesMax)
      if (response.status !== 200) return { kind: 'failed', why: `it answered ${response.status}` }
      if (answer === 'too-large') return { kind: 'failed', why: `its verdict has more than ${verdictBytesMax} bytes` }
      return readVerdict(answer)
    } catch (error) {
      if (error instanceof EgressRefusal) return { kind: 'failed', why: `its URL ${error.message}` }
      return {
        kind: 'failed',
        why: signal.aborted ? `it did not answer within ${timeoutMs} ms` : 'its connection failed',
      }
    }
  }
}

/** Members that are not known are ignored: a policy cannot rewrite anything. */
function readVerdict(answer: Uint8Array): Verdict {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(answer))
  } catch {
    return { kind: 'failed', why: 'its verdict is not JSON' }
  }
  const { decision, code, message } = recordOf(value)
  if (decision === 'allow') return { kind: 'allowed' }
  if (decision !== 'block') return { kind: 'failed', why: 'its `decision` is neither allow nor block' }
  const said = textOf(message).toWellFormed().trim().slice(0, messageMax)
  return { kind: 'blocked', code: wordOf(code) || undefined, message: said || undefined }
}
