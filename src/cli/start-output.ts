// What a start prints: for a person on a terminal the block they need for their first call, otherwise the same facts as
// log lines. Secrets appear once, at the first start; a variable is named, its value never shown.

import type { LogFields } from '../telemetry/log.ts'

export interface StartFacts {
  readonly version: string
  readonly url: string
  readonly dataFolder: string
  readonly engine: 'sqlite' | 'postgres'
  /** Only at the first start. */
  readonly firstKey: string | undefined
  readonly firstKeyFile: string
  /** Signs a browser in once; only at the first start. */
  readonly consoleLink: string | undefined
  /** A variable or a file, never the token. */
  readonly managementToken: string
  /** Decimal USD in the wallet of the first workspace; only at the first start. */
  readonly openingCredit: string | undefined
  readonly providersOn: readonly ProviderFact[]
  /** Built-in providers whose variable is not set. */
  readonly providersOff: readonly { readonly id: string; readonly variable: string }[]
}

export interface ProviderFact {
  readonly id: string
  readonly source: string
  readonly models: number
  /** Answers inside this process. */
  readonly offline: boolean
}

export function prettyStart(facts: StartFacts): string {
  const store = facts.engine === 'sqlite' ? `data ${facts.dataFolder} (SQLite)` : 'PostgreSQL'
  const first = facts.firstKey === undefined ? '' : '   first start'
  const lines = [`tollgate ${facts.version}   ${store}${first}`, '']
  const link =
    facts.consoleLink === undefined ? `${facts.url}/console` : `${facts.consoleLink}    one-time link, valid 15 minutes`
  lines.push(`  Console     ${link}`, `  Catalog     ${facts.url}/`)
  lines.push(`  OpenAI      ${facts.url}/v1`, `  Anthropic   ${facts.url}`)
  if (facts.firstKey !== undefined) {
    lines.push(`  API key     ${facts.firstKey}      shown this once; also in ${facts.firstKeyFile} (0600)`)
  }
  lines.push(`  Management  token in ${facts.managementToken}`)
  if (facts.openingCredit !== undefined) {
    lines.push(`  Wallet      $${facts.openingCredit} opening credit, workspace "default"`)
  }
  lines.push('', ...providerLines(facts), '')
  if (facts.firstKey !== undefined) lines.push(...tryLines(facts.url, facts.firstKey), '')
  lines.push(`listening on ${facts.url}`, '')
  return lines.join('\n')
}

export function startLogLines(facts: StartFacts): { readonly message: string; readonly fields: LogFields }[] {
  const lines: { message: string; fields: LogFields }[] = []
  if (facts.firstKey !== undefined) {
    lines.push({
      message: 'first start: this key is shown once',
      fields: {
        api_key: facts.firstKey,
        file: facts.firstKeyFile,
        ...(facts.consoleLink !== undefined && { console: facts.consoleLink }),
        ...(facts.openingCredit !== undefined && { opening_credit: facts.openingCredit }),
      },
    })
  }
  for (const { id, source, models } of facts.providersOn) {
    lines.push({ message: 'provider on', fields: { provider: id, source, models } })
  }
  lines.push({
    message: `listening on ${facts.url}`,
    fields: {
      url: facts.url,
      version: facts.version,
      engine: facts.engine,
      management_token: facts.managementToken,
    },
  })
  return lines
}

/** The two whose dialects we speak; the others would be a wall of names. */
const offNamedMax = 2

function providerLines({ providersOn, providersOff }: StartFacts): string[] {
  const lines = providersOn.map(({ id, source, models, offline }) => {
    const count = `${models} model${models === 1 ? '' : 's'}`
    return `✓ ${id.padEnd(12)} ${offline ? `${count}, offline` : `${count}, key from ${source} (not tested)`}`
  })
  if (providersOff.length > 0) {
    const named = providersOff.slice(0, offNamedMax).map(({ id, variable }) => `${id} (${variable})`)
    const rest = providersOff.length - named.length
    lines.push(`· off: ${named.join(', ')}${rest > 0 ? ` and ${rest} more: npx tollgate providers` : ''}`)
  }
  return lines.map((line, at) => `  ${(at === 0 ? 'Providers' : '').padEnd(12)}${line}`)
}

function tryLines(url: string, key: string): string[] {
  const body =
    '{"model":"sandbox/echo","stream":true,"messages":[{"role":"user","content":"hello from the other side of the gate"}]}'
  return [
    `  Try it      curl -N ${url}/v1/chat/completions \\`,
    `                -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" \\`,
    `                -d '${body}'`,
    '  Connect     npx tollgate connect claude | cline | opencode …        Stop  Ctrl-C',
  ]
}
