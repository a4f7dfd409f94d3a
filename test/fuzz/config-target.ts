// The text of the configuration file. Whatever it is, it is read or refused with places, and neither keys in it nor values
// of the environment are repeated in its error messages.

import fc from 'fast-check'
import { frozenConfig, loadConfig } from '../../src/config/config.ts'
import { upstreamConfig } from '../parts/gateway.ts'
import { trouble } from './corpus.ts'
import { damaged, utf8 } from './damage.ts'
import { type FuzzTarget, insist } from './target.ts'

/** As long as credentials are: names up to 32 characters are shown, since they may be misspelt keys. */
const fileSecret = 'swordfish_in_the_file_0123456789abcdefghij'
const envSecret = 'swordfish_in_the_env_0123456789abcdefghij'

const full = `
server: { host: 127.0.0.1, port: 8080, drain_seconds: 5, body_bytes_max: 1000, public_url: "https://x.test" }
limits: { requests_per_minute: 60, concurrent_requests: 4 }
own_keys: { fee_percent: 1, base_urls: true, allow_hosts: ["10.0.0.1"], plain_http: false }
providers:
  - &p { id: acme, dialect: openai-chat, base_url: "https://\${REGION}.acme.test/v1", api_key: ${fileSecret} }
  - { <<: *p, id: two, api_key: "\${ACME_KEY}" }
models:
  - id: acme/large
    price: { input: "1.00", output: "2.00" }
    context_tokens: 1000
    tags: [reasoning]
    routes: [{ provider: acme, model: up, priority: 1, timeouts: { idle: 5 } }]
`
const bomb = `a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c]\n`
const corpus = [
  full,
  upstreamConfig('http://127.0.0.1:1'),
  bomb,
  '{"providers":[]}',
  '__proto__: { polluted: 1 }\n',
  '',
]

function check(bytes: Uint8Array): void {
  const text = Buffer.from(bytes).toString()
  const loaded = loadConfig({
    env: { ACME_KEY: envSecret, REGION: 'eu', TOLLGATE_CONFIG: '/x/tollgate.yaml' },
    cwd: '/x',
    stdoutIsTerminal: false,
    providerVariables: [],
    builtInProviderIds: ['builtin'],
    builtInModels: [],
    readFile(path) {
      if (path === '/x/tollgate.yaml') return text
      throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
    },
  })
  const shown = 'faults' in loaded ? JSON.stringify(loaded.faults) : JSON.stringify(frozenConfig(loaded.config))
  insist(!('faults' in loaded) || loaded.faults.length > 0, 'refused without a fault')
  insist(!shown.includes(fileSecret) && !shown.includes(envSecret), `a secret is shown: ${shown.slice(0, 500)}`)
  const warned = JSON.stringify(loaded.warnings)
  insist(!warned.includes(fileSecret) && !warned.includes(envSecret), 'a secret in a warning')
}

export const configTarget: FuzzTarget = {
  name: 'config-file',
  shareInputs: 300,
  open() {
    const seeds = [...trouble('config-file'), ...corpus.map(utf8)]
    return {
      property: fc.property(damaged(seeds), check),
      examples: seeds.map((bytes) => [bytes]),
    }
  },
}
