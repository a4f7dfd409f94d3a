// What a start prints: for a person on a terminal the block they need for their first call, otherwise the same facts as
// log lines. Secrets appear once, at the first start; a variable is named, its value never shown.

import type { LogFields } from '../telemetry/log.ts'

export interface StartFacts {
  readonly version: string
  readonly url: string
  readonly dataFolder: string
  readonly engine: 'sqlite' | 'postgres'
  /** Only at the start that shows the first key. */
  readonly first: FirstFacts | undefined
  /** A variable or a file, never the token. */
  readonly managementToken: string
  readonly providersOn: readonly ProviderFact[]
  /** Built-in providers whose variable is not set. */
  readonly providersOff: readonly { readonly id: string; readonly variable: string }[]
}

export interface FirstFacts {
  readonly key: string
  readonly keyFile: string
  /** Signs a browser in once. */
  readonly consoleLink: string
  /** Decimal USD in the wallet of the first workspace. */
  readonly openingCredit: string
}

export interface ProviderFact {
  readonly id: string
  readonly source: string
  readonly models: number
  /** Answers inside this process. */
  readonly offline: boolean
}

export function prettyStart(facts: StartFacts): string {
  const { url, first } = facts
  const store = facts.engine === 'sqlite' ? `data ${facts.dataFolder} (SQLite)` : 'PostgreSQL'
  const lines = [`tollgate ${facts.version}   ${store}${first ? '   first start' : ''}`, '']
  const link = first ? `${first.consoleLink}    one-time link, valid 15 minutes` : `${url}/console`
  lines.push(`  Console     ${link}`, `  Catalog     ${url}/`)
  lines.push(`  OpenAI      ${url}/v1`, `  Anthropic   ${url}`)
  if (first) lines.push(`  API key     ${first.key}      shown this once; also in ${first.keyFile} (0600)`)
  lines.push(`  Management  token in ${facts.managementToken}`)
  if (first) lines.push(`  Wallet      $${first.openingCredit} opening credit, workspace "default"`)
  lines.push('', ...providerLines(facts), '')
  if (first) {
    lines.push(`  Try it      ${curlParts(url, first.key).join(' \\\n                ')}`)
    lines.push('  Connect     npx tollgate connect claude | cline | opencode …        Stop  Ctrl-C', '')
  }
  lines.push(`listening on ${url}`, '')
  return lines.join('\n')
}

export function startLogLines(facts: StartFacts): { readonly message: string; readonly fields: LogFields }[] {
  const { url, first } = facts
  const lines: { message: string; fields: LogFields }[] = []
  if (first) {
    lines.push({
      message: 'first start: this key is shown once',
      fields: {
        api_key: first.key,
        file: first.keyFile,
        console: first.consoleLink,
        opening_credit: first.openingCredit,
        curl: curlParts(url, first.key).join(' '),
      },
    })
  }
  for (const { id, source, models } of facts.providersOn) {
    lines.push({ message: 'provider on', fields: { provider: id, source, models } })
  }
  lines.push({
    message: `listening on ${url}`,
    fields: {
      url,
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

/** The first call as a shell takes it, in parts that each fit on a line. */
function curlParts(url: string, key: string): readonly string[] {
  const body =
    '{"model":"sandbox/echo","stream":true,"messages":[{"role":"user","content":"hello from the other side of the gate"}]}'
  return [
    `curl -N ${url}/v1/chat/completions`,
    `-H "Authorization: Bearer ${key}" -H "Content-Type: application/json"`,
    `-d '${body}'`,
  ]
}
