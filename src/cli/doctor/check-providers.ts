// Whether each provider's key is good, asked with one call that costs nothing: a request without a model or a message is
// refused by everybody, but a wrong key is refused first. What a provider says may quote the key, so it is not repeated.

import type { Config } from '../../config/config.ts'
import { anthropicMessages } from '../../dialects/anthropic-messages/index.ts'
import type { ProviderFault } from '../../dialects/canonical/provider-fault.ts'
import type { Dialect, DialectId, UpstreamDialect } from '../../dialects/dialect.ts'
import { gemini } from '../../dialects/gemini/index.ts'
import { openaiChat } from '../../dialects/openai-chat/index.ts'
import { openaiResponses } from '../../dialects/openai-responses/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { callEndpoint } from '../../providers/call-endpoint.ts'
import { findLocalServers } from '../../providers/local.ts'
import type { Endpoint, Provider } from '../../providers/provider.ts'
import { builtInProviders, createProviders } from '../../providers/registry.ts'
import { classifyFault } from '../../routing/fault.ts'
import { readResponseBody } from '../../wire/read-body.ts'
import { type Finding, note, ok, wrong } from './finding.ts'

const dialects: Readonly<Record<DialectId, UpstreamDialect | Dialect>> = {
  'openai-chat': openaiChat,
  'anthropic-messages': anthropicMessages,
  gemini,
  'openai-responses': openaiResponses,
}

const callMs = 10_000
const localSearchMs = 1000
const answerBytesMax = 65_536

export interface ProviderFindings {
  readonly findings: readonly Finding[]
  /** When a provider dated its answer, and when that came. */
  readonly dated: { readonly at: number; readonly receivedAt: number } | undefined
}

/** Those that these settings switch on, in the order of the registry and the file. */
export function providersOf(config: Config, clock: Clock): ReadonlyMap<string, Provider> {
  return createProviders({
    entries: config.providers,
    keys: config.providerKeys,
    sandboxOn: config.sandbox,
    sandboxTransport: () => Promise.reject(new Error('nothing is generated here')),
    clock,
  })
}

export async function checkProviders(config: Config, clock: Clock): Promise<ProviderFindings> {
  const providers = [...providersOf(config, clock).values()]
  const checked = await Promise.all(providers.map((provider) => checkProvider(provider, clock)))
  const off = builtInProviders.filter(({ id }) => !providers.some((provider) => provider.id === id))
  const findings = checked.map(({ finding }) => finding)
  if (off.length > 0) {
    findings.push(ok('provider', `${off.length} more are off until their variable is set: tollgate providers`))
  }
  return { findings, dated: checked.find(({ dated }) => dated !== undefined)?.dated }
}

interface Checked {
  readonly finding: Finding
  readonly dated?: ProviderFindings['dated']
}

async function checkProvider(provider: Provider, clock: Clock): Promise<Checked> {
  const { id, source, transport, apiKey } = provider
  const [endpoint] = provider.endpoints
  if (transport !== undefined || endpoint === undefined) {
    return { finding: ok('provider', `${id} (${source}) answers inside the gateway`) }
  }
  const name = `${id} (${source})`
  const signal = AbortSignal.timeout(callMs)
  try {
    const dialect = dialects[endpoint.dialect]
    const response = await callEndpoint(provider, endpoint, {
      path: dialect.generationPath('doctor'),
      headers: 'forwardedHeaders' in dialect ? dialect.forwardedHeaders(new Headers()) : {},
      body: new TextEncoder().encode('{}'),
      signal,
    })
    const date = Date.parse(response.headers.get('date') ?? '')
    const dated = Number.isNaN(date) ? undefined : { at: date, receivedAt: clock.now() }
    const body = await readResponseBody(response, answerBytesMax)
    const text = body === 'too-large' ? '' : new TextDecoder().decode(body)
    const fault = response.ok ? undefined : dialect.readFault(response.status, response.headers, text)
    return { finding: findingOf(name, endpoint, fault, apiKey !== undefined), dated }
  } catch (thrown) {
    return { finding: unreachable(name, endpoint, signal.aborted ? `no answer in ${callMs / 1000} s` : codeOf(thrown)) }
  }
}

function findingOf(name: string, endpoint: Endpoint, fault: ProviderFault | undefined, hasKey: boolean): Finding {
  const area = 'provider'
  const accepts = hasKey ? `${name} accepts the key` : `${name} answers, and needs no key`
  if (fault === undefined) return ok(area, accepts)
  const status = fault.status ?? 0
  // Said with a 400 by one of them.
  const isKeyFault = status === 400 && /api.?key/i.test(`${fault.message} ${JSON.stringify(fault.details ?? '')}`)
  switch (isKeyFault ? 'refused our credential' : classifyFault(fault).class) {
    case 'refused our credential':
      return hasKey
        ? wrong(area, `${name} refuses the key (${status})`, `put a good one where it comes from: ${sourceOf(name)}`)
        : wrong(area, `${name} wants a key (${status})`, 'give its entry an api_key')
    case 'out of quota':
      return wrong(area, `${name} accepts the key, but its account has no credit (${status})`, 'top it up there')
    case 'throttled':
      return note(area, `${accepts}, but throttles it now (${status})`, 'try again in a minute')
    case 'failing':
      return note(area, `${name} is in trouble (${status})`, 'see its status page; other routes take over')
    case 'redirecting':
      return wrong(area, `${name} answers with a redirect (${status})`, `mend its base_url: ${endpoint.baseUrl}`)
    case 'does not know the model':
      // A request without a model is a 400 elsewhere; a 404 that speaks of none is a wrong address.
      return isAddressFault(fault)
        ? wrong(area, `${name} has nothing at its address (${status})`, `mend its base_url: ${endpoint.baseUrl}`)
        : ok(area, accepts)
    default:
      return ok(area, accepts)
  }
}

function isAddressFault({ status, message, code, type }: ProviderFault): boolean {
  return status === 404 && !/model/i.test(`${message} ${code ?? ''} ${type ?? ''}`)
}

function sourceOf(name: string): string {
  return /\((.*)\)$/.exec(name)?.[1] ?? name
}

function unreachable(name: string, { baseUrl }: Endpoint, why: string): Finding {
  const host = URL.parse(baseUrl)?.host ?? baseUrl
  return wrong('provider', `${name} cannot be reached at ${host} (${why})`, 'check the network, a proxy, its base_url')
}

/** Of the runtime's errors only the code: a message may quote an address with a password. */
function codeOf(thrown: unknown): string {
  return thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'the call failed'
}

/** Programs on this machine that serve models. */
export async function checkLocalServers(config: Config): Promise<readonly Finding[]> {
  const area = 'local models'
  if (!config.localModels) return [ok(area, 'not looked for: local_models is off')]
  const signal = AbortSignal.timeout(localSearchMs)
  const servers = await findLocalServers({ exceptPorts: [config.port], signal })
  if (servers.length === 0) return [ok(area, 'no server on the usual ports')]
  return servers.map(({ provider: { id, source }, models }) => {
    const count = `${models.length} model${models.length === 1 ? '' : 's'}`
    const what = `${id} at ${source}, ${count}`
    return models.length > 0 ? ok(area, what) : note(area, what, 'install a model there')
  })
}
