// What doctor says of each provider: whether its key is good, asked as the console asks it, and which model servers run on
// this machine. What a provider answers is not repeated.

import type { Config } from '../../config/config.ts'
import { anthropicMessages } from '../../dialects/anthropic-messages/index.ts'
import { gemini } from '../../dialects/gemini/index.ts'
import { openaiChat } from '../../dialects/openai-chat/index.ts'
import { openaiResponses } from '../../dialects/openai-responses/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { findLocalServers } from '../../providers/local.ts'
import type { Provider } from '../../providers/provider.ts'
import { builtInProviders, createProviders } from '../../providers/registry.ts'
import { type Probe, type ProbedDialects, probeProvider } from '../../routing/probe-provider.ts'
import { type Finding, note, ok, wrong } from './finding.ts'

const dialects: ProbedDialects = {
  'openai-chat': openaiChat,
  'anthropic-messages': anthropicMessages,
  gemini,
  'openai-responses': openaiResponses,
}

const localSearchMs = 1000

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
  const probe = await probeProvider(provider, dialects)
  const dated = probe.date === undefined ? undefined : { at: probe.date, receivedAt: clock.now() }
  return { finding: findingOf(provider, probe), dated }
}

function findingOf({ id, source, endpoints, apiKey }: Provider, { verdict, status, why = '' }: Probe): Finding {
  const area = 'provider'
  const name = `${id} (${source})`
  const baseUrl = endpoints[0]?.baseUrl ?? ''
  const accepts = apiKey === undefined ? `${name} answers, and needs no key` : `${name} accepts the key`
  switch (verdict) {
    case 'inside':
      return ok(area, `${name} answers inside the gateway`)
    case 'accepted':
      return ok(area, accepts)
    case 'refused':
      return apiKey === undefined
        ? wrong(area, `${name} wants a key (${status})`, 'give its entry an api_key')
        : wrong(area, `${name} refuses the key (${status})`, `put a good one where it comes from: ${source}`)
    case 'out of credit':
      return wrong(area, `${name} accepts the key, but its account has no credit (${status})`, 'top it up there')
    case 'throttled':
      return note(area, `${accepts}, but throttles it now (${status})`, 'try again in a minute')
    case 'failing':
      return note(area, `${name} is in trouble (${status})`, 'see its status page; other routes take over')
    case 'redirecting':
      return wrong(area, `${name} answers with a redirect (${status})`, `mend its base_url: ${baseUrl}`)
    case 'wrong address':
      return wrong(area, `${name} has nothing at its address (${status})`, `mend its base_url: ${baseUrl}`)
    case 'unreachable': {
      const host = URL.parse(baseUrl)?.host ?? baseUrl
      return wrong(area, `${name} cannot be reached at ${host} (${why})`, 'check the network, a proxy, its base_url')
    }
  }
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
