// Tests whether a provider accepts a key, with one free call: every provider refuses a request without a model or message, but
// refuses a wrong key first. The provider's message may quote the key, so none of it is passed on.

import type { ProviderFault } from '../dialects/canonical/faults.ts'
import type { Dialect, DialectId, UpstreamDialect } from '../dialects/dialect.ts'
import { tokenFault } from '../providers/access-tokens.ts'
import { callEndpoint, isBadCredential } from '../providers/call-endpoint.ts'
import type { Endpoint, Provider } from '../providers/provider.ts'
import { readResponseBody } from '../wire/read-body.ts'
import { classifyFault, type FaultClass } from './faults.ts'

export type ProbeVerdict =
  /** The key is accepted, or none is needed. */
  | 'accepted'
  | 'refused'
  /** The key is valid, but its account has no credit. */
  | 'out of credit'
  | 'throttled'
  | 'failing'
  | 'redirecting'
  /** A server answers, but not with this dialect. */
  | 'wrong address'
  | 'unreachable'
  /** It runs in this process: there is nothing to call. */
  | 'inside'

export interface Probe {
  readonly verdict: ProbeVerdict
  /** undefined = no response. */
  readonly status?: number
  /** Why there was no response: an error code, a timeout, or why there is no access token. */
  readonly why?: string
  /** The response's date, in epoch milliseconds. */
  readonly date?: number
}

/** What a failed test shows, as a fault of an attempt would be named; undefined = the provider accepts the key. */
export function probeFault({ verdict }: Probe): string | undefined {
  if (verdict === 'accepted' || verdict === 'inside') return undefined
  return probeFaults[verdict] ?? verdict
}

const probeFaults: Readonly<Partial<Record<ProbeVerdict, FaultClass>>> = {
  refused: 'refused our credential',
  'out of credit': 'out of quota',
}

export type ProbedDialects = Readonly<Record<DialectId, UpstreamDialect | Dialect>>

export const probeMs = 10_000
const answerBytesMax = 65_536

export async function probeProvider(
  provider: Pick<Provider, 'id' | 'endpoints' | 'apiKey' | 'source' | 'transport'>,
  dialects: ProbedDialects,
  signal: AbortSignal = AbortSignal.timeout(probeMs),
): Promise<Probe> {
  const [endpoint] = provider.endpoints
  if (endpoint === undefined || isInside(provider, endpoint)) return { verdict: 'inside' }
  const dialect = dialects[endpoint.dialect]
  try {
    const response = await callEndpoint(provider, endpoint, {
      path: dialect.generationPath('doctor', true),
      headers: 'forwardedHeaders' in dialect ? dialect.forwardedHeaders(new Headers()) : {},
      body: new TextEncoder().encode('{}'),
      signal,
    })
    const { status, headers } = response
    const date = Date.parse(headers.get('date') ?? '')
    const body = await readResponseBody(response, answerBytesMax)
    const text = body === 'too-large' ? '' : new TextDecoder().decode(body)
    const verdict = status >= 200 && status < 300 ? 'accepted' : verdictOf(dialect.readFault(status, headers, text))
    return { verdict, status, ...(!Number.isNaN(date) && { date }) }
  } catch (thrown) {
    const why = tokenFault(thrown) ?? (signal.aborted ? `no answer in ${probeMs / 1000} s` : codeOf(thrown))
    return { verdict: isBadCredential(thrown) ? 'refused' : 'unreachable', why }
  }
}

/** A workspace's own address has a transport too, the guarded one; only the sandbox has no URL. */
function isInside({ transport }: Pick<Provider, 'transport'>, { baseUrl }: Endpoint): boolean {
  return transport !== undefined && !/^https?:/.test(baseUrl)
}

function verdictOf(fault: ProviderFault): ProbeVerdict {
  const status = fault.status ?? 0
  // One provider rejects keys with a 400.
  if (status === 400 && /api.?key/i.test(`${fault.message} ${JSON.stringify(fault.details ?? '')}`)) return 'refused'
  // A request without a model is a 400 elsewhere; a 404 that does not mention a model is a wrong address.
  if (isAddressFault(fault)) return 'wrong address'
  return verdicts[classifyFault(fault).class] ?? 'accepted'
}

const verdicts: Readonly<Partial<Record<FaultClass, ProbeVerdict>>> = {
  ...{ 'refused our credential': 'refused', 'out of quota': 'out of credit' },
  ...{ throttled: 'throttled', failing: 'failing', redirecting: 'redirecting' },
}

function isAddressFault({ status, message, code, type }: ProviderFault): boolean {
  return status === 404 && !/model/i.test(`${message} ${code ?? ''} ${type ?? ''}`)
}

/** Only the code of runtime errors: a message may contain a URL with a password. */
function codeOf(thrown: unknown): string {
  return thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'the call failed'
}
