// Every setting of the configuration file that is not an entry of a list: one row each. Config, the variable, the JSON
// Schema, `tollgate config`, `--help` and the tables of docs/reference/configuration.md all follow from the row.

import { z } from 'zod'
import { redactionRules } from '../kernel/content-export.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import { parseIpRange } from '../kernel/ip-range.ts'
import { type ProcessFacts, setting } from './setting.ts'

export const onOff = z.codec(
  z.union([z.enum(['on', 'off']), z.boolean()], { error: 'expected on or off' }),
  z.boolean(),
  {
    decode: (written) => written === 'on' || written === true,
    encode: (isOn) => (isOn ? 'on' : 'off'),
  },
)

/** In Config: milliseconds. */
const seconds = (max: number) =>
  z.codec(z.number().min(0).max(max), z.int(), {
    decode: (written) => Math.round(written * 1000),
    encode: (ms) => ms / 1000,
  })

/** In Config: hundredths of a percent. */
const percent = z.codec(
  z.number().min(0).max(100).multipleOf(0.01, { error: 'expected a percentage with at most two decimals' }),
  z.int(),
  { decode: (written) => Math.round(written * 100), encode: (basisPoints) => basisPoints / 100 },
)

const milliseconds = z.int().min(0).max(60_000)
const limit = z.int().min(1).max(1_000_000_000)
const name = z.string().min(1)
const hosts = z.array(name)

function usd(decimals: number) {
  const pattern = new RegExp(`^[0-9]{1,6}(\\.[0-9]{1,${decimals}})?$`)
  return z.string().regex(pattern, { error: 'expected US dollars in quotes, such as "5.00"' })
}

const ipRange = z.string().refine((text) => parseIpRange(text) !== undefined, {
  error: 'expected an address or a range whose bits after the prefix are 0, such as 10.0.0.0/8',
})

const mappedRole = z
  .strictObject({
    group: name.describe('A value of the group claim.'),
    role: z
      .enum(['operator', 'admin', 'member', 'viewer'], { error: 'expected operator, admin, member or viewer' })
      .describe('The role that people in the group have.'),
    workspace: z
      .string()
      .regex(/^ws_/, { error: 'expected the id of a workspace (ws_…)' })
      .optional()
      .describe('Required, except for the role operator.'),
  })
  .refine(({ role, workspace }) => (role === 'operator') === (workspace === undefined), {
    error: 'expected a workspace for every role except operator',
  })
  .transform(({ group, role, workspace }) => ({ group, role, workspaceId: workspace as WorkspaceId | undefined }))

const scopes = z
  .array(z.string().regex(/^[!-~]+$/, { error: 'expected the name of a scope, without spaces' }))
  .refine((names) => names.includes('openid'), { error: 'expected openid among the scopes' })

/** By section of the file. The settings of `server` are members of Config itself, the others of a member of their own. */
export const sections = {
  server: {
    about: 'Settings of the process. An environment variable takes precedence over each of them.',
    settings: {
      host: setting(
        z.string().regex(/^[A-Za-z0-9.:_%-]+$/, {
          error: 'expected a host name or address such as 127.0.0.1, without port or brackets',
        }),
        {
          default: '127.0.0.1',
          variable: 'TOLLGATE_HOST',
          help: 'address to listen on',
          needsRestart: true,
          inHelp: true,
        },
      ),
      port: setting(z.int().min(0).max(65535), {
        default: 8080,
        variable: 'TOLLGATE_PORT',
        help: 'port to listen on; 0 = any free port',
        details: 'The gateway prints it at start.',
        needsRestart: true,
        inHelp: true,
      }),
      data: setting(z.string().min(1, { error: 'expected the path of a folder' }), {
        member: 'dataFolder',
        default: './data',
        isPath: true,
        variable: 'TOLLGATE_DATA',
        help: 'folder of the embedded database and generated secrets',
        details: 'A relative path starts at the working directory. The folder also holds `first-key`.',
        needsRestart: true,
        inHelp: true,
      }),
      log: setting(z.enum(['pretty', 'json']), {
        member: 'logFormat',
        default: ({ stdoutIsTerminal }: ProcessFacts) => (stdoutIsTerminal ? 'pretty' : 'json'),
        unset: '`pretty` on a terminal, otherwise `json`',
        variable: 'TOLLGATE_LOG',
        help: 'log format',
        needsRestart: true,
        inHelp: true,
      }),
      sandbox: setting(onOff, {
        default: 'on',
        variable: 'TOLLGATE_SANDBOX',
        help: 'whether the offline sandbox provider and its models are available',
        inHelp: true,
      }),
      body_bytes_max: setting(
        z
          .int()
          .min(1024)
          .max(2 ** 30),
        {
          member: 'bodyBytesMax',
          default: 32 * 2 ** 20,
          unit: 'bytes',
          variable: 'TOLLGATE_BODY_BYTES_MAX',
          help: 'largest request body',
        },
      ),
      bodies_bytes_max: setting(
        z
          .int()
          .min(2 ** 20)
          .max(2 ** 40),
        {
          member: 'bodiesBytesMax',
          default: 256 * 2 ** 20,
          unit: 'bytes',
          variable: 'TOLLGATE_BODIES_BYTES_MAX',
          help: 'how much of request bodies that are still arriving may be in memory, all together',
          details:
            'At most a quarter of the memory of the machine or container, at least `body_bytes_max`. Above it, bodies that arrive slowly are given up first; then new ones get a 503 with `Retry-After`.',
        },
      ),
      drain_seconds: setting(seconds(3600), {
        member: 'drainMs',
        default: 120,
        unit: 'seconds',
        variable: 'TOLLGATE_DRAIN_SECONDS',
        help: 'how long a stopping gateway waits for running requests',
        inHelp: true,
      }),
      drain_delay_seconds: setting(seconds(60), {
        member: 'drainDelayMs',
        // PostgreSQL means several replicas, and the load balancer needs a moment to notice that one is leaving.
        default: ({ usesPostgres }: ProcessFacts) => (usesPostgres ? 5 : 0),
        unset: '5 seconds with PostgreSQL, otherwise 0',
        unit: 'seconds',
        variable: 'TOLLGATE_DRAIN_DELAY_SECONDS',
        help: 'how long a stopping gateway still accepts requests, so that the load balancer can react',
        details: 'Meanwhile `/readyz` returns 503.',
      }),
      public_url: setting(
        z
          .url({ protocol: /^https?$/, error: 'expected the address people use, such as https://gate.example.com' })
          .overwrite((url) => url.replace(/\/+$/, '')),
        {
          member: 'publicUrl',
          unset: 'where it listens',
          variable: 'TOLLGATE_PUBLIC_URL',
          help: 'public address of the gateway, for links',
        },
      ),
      requests_retention_days: setting(z.int().min(0).max(36_500), {
        member: 'requestsRetentionDays',
        default: 90,
        unit: 'days',
        variable: 'TOLLGATE_REQUESTS_RETENTION_DAYS',
        help: 'how long the request log is kept; 0 = forever. Charges are always kept',
      }),
      store_responses: setting(onOff, {
        member: 'storeResponses',
        default: 'off',
        variable: 'TOLLGATE_STORE_RESPONSES',
        help: 'whether responses of `/v1/responses` are stored, encrypted, for callers that send `store: true`',
        details: 'See [what is stored](../security.md#stored-responses).',
      }),
      responses_retention_days: setting(z.int().min(1).max(3650), {
        member: 'responsesRetentionDays',
        default: 30,
        unit: 'days',
        variable: 'TOLLGATE_RESPONSES_RETENTION_DAYS',
        help: 'how long stored responses are kept',
      }),
      catalog: setting(
        z.codec(z.enum(['public', 'signed-in']), z.boolean(), {
          decode: (readers) => readers === 'public',
          encode: (isPublic) => (isPublic ? 'public' : 'signed-in'),
        }),
        {
          member: 'catalogIsPublic',
          default: 'public',
          variable: 'TOLLGATE_CATALOG',
          help: 'who may read the catalog, as pages and as `GET /api/catalog`',
          details: '`signed-in` restricts the pages to console users and `GET /api/catalog` to the management token.',
        },
      ),
      local_models: setting(onOff, {
        member: 'localModels',
        default: 'on',
        variable: 'TOLLGATE_LOCAL_MODELS',
        help: 'whether the gateway looks for model servers on the usual ports of this machine when it starts',
        details: 'It finds Ollama, LM Studio, vLLM and llama.cpp.',
        // They are looked for once.
        needsRestart: true,
      }),
      instance_identity: setting(z.enum(['aws', 'google', 'azure']), {
        member: 'instanceIdentity',
        variable: 'TOLLGATE_INSTANCE_IDENTITY',
        help: 'the cloud whose virtual machine this is, so that its models are called with the identity of the machine',
        unset: 'a virtual machine is not asked for its identity',
        details:
          'Only for a provider without a key. Pods, containers and App Service need no setting: see [cloud identities](../recipes/cloud-identities.md).',
      }),
      end_users: setting(z.enum(['hashed', 'plain', 'off']), {
        member: 'endUsers',
        default: 'hashed',
        variable: 'TOLLGATE_END_USERS',
        help: 'how the [end user](attribution.md) that a request names is recorded: `hashed`, `plain` (its id beside the hash) or `off`',
      }),
      cors_origins: setting(
        z.array(
          z.string().regex(/^(\*|https?:\/\/[^\s/?#]+|[a-z][a-z0-9+.-]*:\/\/[^\s/?#]*)$/i, {
            error: 'expected an origin such as https://app.example.com, or *',
          }),
        ),
        {
          member: 'corsOrigins',
          default: [],
          variable: 'TOLLGATE_CORS_ORIGINS',
          help: 'origins of web pages that may call the API from a browser, such as `https://app.example.com`; `*` = any',
          details: 'Anyone who opens such a page can read the key in it.',
        },
      ),
      client_telemetry: setting(onOff, {
        member: 'clientTelemetry',
        default: 'on',
        variable: 'TOLLGATE_CLIENT_TELEMETRY',
        help: "whether [telemetry of Claude Code](../operate/observe.md#telemetry-of-claude-code) is passed on to the operator's collector; `off` accepts and drops it",
      }),
      provider_choice: setting(onOff, {
        member: 'providerChoice',
        default: 'on',
        variable: 'TOLLGATE_PROVIDER_CHOICE',
        help: 'whether callers may choose [providers](model-names.md#providers) (`provider`, `:floor`, `:nitro`); `off` ignores their choice',
      }),
      trusted_proxies: setting(z.array(ipRange), {
        member: 'trustedProxies',
        default: [],
        variable: 'TOLLGATE_TRUSTED_PROXIES',
        help: 'addresses and ranges of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted, such as `10.0.0.0/8`',
        details:
          "Used for a key's `sources`, for slowing down wrong management tokens, and for the `Secure` attribute of the console's cookie.",
      }),
    },
  },

  limits: {
    about: 'Default limits for keys that have none.',
    settings: {
      requests_per_minute: setting(limit, {
        member: 'requestsPerMinute',
        unset: 'unlimited',
        help: 'requests per minute and key: a burst of that many, refilled evenly',
      }),
      tokens_per_minute: setting(limit, {
        member: 'tokensPerMinute',
        unset: 'unlimited',
        help: 'input and output tokens per minute and key',
      }),
      concurrent_requests: setting(limit, {
        member: 'concurrentRequests',
        unset: 'unlimited',
        help: 'requests of one key that run at the same time',
      }),
    },
  },

  own_keys: {
    member: 'ownKeys',
    about: 'Provider keys that workspaces bring.',
    settings: {
      fee_percent: setting(percent, {
        member: 'feeBasisPoints',
        default: 0,
        unit: '%',
        help: "fee for a call on a workspace's own provider key, in percent of the model's price",
        details: 'It has its own price versions (`creator/model#own#1`). The call is recorded in any case.',
      }),
      base_urls: setting(z.boolean(), {
        member: 'mayBringAddress',
        default: false,
        help: 'whether a workspace may set a base URL with its key',
        details: "The base URL is checked before every call. The provider's own address is always allowed.",
      }),
      allow_hosts: setting(hosts, {
        member: 'allowHosts',
        default: [],
        help: 'hosts, addresses and ranges that such a base URL may use although they are not public',
      }),
      plain_http: setting(z.boolean(), {
        member: 'plainHttp',
        default: false,
        help: 'whether such a base URL may use http, on port 80',
      }),
    },
  },

  retries: {
    about: 'Retries on the same route if no other route is left and the error may be temporary.',
    settings: {
      attempts: setting(z.int().min(1).max(10), {
        default: 10,
        help: 'no retry starts once a request has made this many provider calls; 1 = no retries',
        details: 'Moving to another route is not a retry.',
      }),
      backoff_ms: setting(milliseconds, {
        member: 'backoffMs',
        default: 2000,
        unit: 'ms',
        help: 'upper bound of the first wait, which is random below it; doubles with each further retry',
      }),
      total_ms: setting(milliseconds, {
        member: 'totalMs',
        default: 20_000,
        unit: 'ms',
        help: 'no retry starts later than this after all routes have failed for the first time',
      }),
      unavailable_status: setting(z.literal([404, 503]), {
        member: 'unavailableStatus',
        default: 404,
        help: 'status of a request to `/v1/chat/completions` or `/v1/messages` when the providers of the model fail for now',
        details: 'On other endpoints it is always 503, with the code [UNAVAILABLE](../errors.md#unavailable).',
      }),
    },
  },

  sessions: {
    about: 'How conversations of agents are served from turn to turn.',
    settings: {
      cache_marks: setting(onOff, {
        member: 'cacheMarks',
        default: 'on',
        help: 'whether callers of Chat Completions and Responses get cache marks on models that cache only what is marked',
        details: "A model's `cache_marks` takes precedence, and so does the header `x-tollgate-cache-marks: off`.",
      }),
      keep_reasoning: setting(onOff, {
        member: 'keepReasoning',
        default: 'on',
        help: 'whether signed reasoning is kept in memory, encrypted, for an hour after its last use, for callers of Chat Completions, whose clients do not [send it back](prompt-caching.md#kept-reasoning), and output items for callers of Responses that [refer to them](responses.md#item-references)',
      }),
    },
  },

  content_export: {
    member: 'contentExport',
    about: '[Content export](../operate/content-export.md): prompts and answers of the projects that export them.',
    settings: {
      url: setting(
        z
          .url({ protocol: /^https?$/, error: 'expected an address such as https://collector.example.com:4318' })
          .refine((url) => URL.parse(url)?.username === '' && !/[?#]/.test(url), {
            error: 'expected an address without a user, a password, ? or #; credentials go to TOLLGATE_CONTENT_HEADERS',
          })
          .overwrite((url) => url.replace(/\/+$/, '').replace(/\/v1\/traces$/, '')),
        {
          unset: 'content is not exported',
          variable: 'TOLLGATE_CONTENT_URL',
          help: 'the collector or the tool that gets prompts and answers over OTLP, such as `http://phoenix:6006`; `/v1/traces` is appended',
        },
      ),
      sample_percent: setting(percent, {
        member: 'sampleBasisPoints',
        default: 100,
        unit: '%',
        help: 'share of conversations that are exported; all requests of a conversation that the client names, or none',
      }),
      characters_max: setting(z.int().min(1000).max(1_000_000), {
        member: 'charactersMax',
        default: 65_536,
        help: 'characters of the input that are exported, the newest messages first, and again of the output',
      }),
      redact: setting(z.array(z.enum(redactionRules)), {
        default: redactionRules,
        help: 'what is replaced before it is exported: `keys` of well-known forms, `emails`, and numbers of payment `cards`; `[]` = nothing',
      }),
      response_header: setting(onOff, {
        member: 'isAnnounced',
        default: 'off',
        help: 'whether answers that are exported say so in the header `x-tollgate-content`',
      }),
    },
  },

  prices: {
    about: 'Regular price updates.',
    settings: {
      update_from: setting(z.string().min(1, { error: 'expected an address or the path of a file' }), {
        member: 'updateFrom',
        isPath: true,
        help: 'a price list that you trust: an https address, or a file relative to the working directory. Its prices are applied; large jumps are held back',
        details:
          'It is read a minute after the start and then regularly, as by [`tollgate prices update`](cli.md). Prices of this file and those set by hand stay, and jumps are logged.',
      }),
      update_hours: setting(z.int().min(1).max(720), {
        member: 'updateHours',
        default: 24,
        unit: 'hours',
        help: 'how often the price list is read',
      }),
    },
  },

  reconcile: {
    about: "The daily comparison of providers' bills (`bills`) with what was recorded.",
    settings: {
      daily: setting(onOff, {
        default: 'on',
        help: 'whether the bills are read every day; one replica does it. `tollgate reconcile` reads them at any time',
      }),
      hour: setting(z.int().min(0).max(23), {
        default: 8,
        unit: 'o’clock UTC',
        help: 'when they are read',
        details: 'Providers finish counting a day some hours after its end.',
      }),
      days: setting(z.int().min(1).max(31), {
        default: 5,
        unit: 'days',
        help: 'how many past days are read again each time, because providers correct their reports',
      }),
    },
  },

  batches: {
    about: '[Batches](batches.md): files of requests that are answered in the background.',
    settings: {
      enabled: setting(onOff, {
        default: 'off',
        variable: 'TOLLGATE_BATCHES',
        help: 'whether callers can create batches, whose prompts and answers are stored, encrypted, until they are deleted',
        details: 'See [what is stored](../security.md#batches).',
      }),
      concurrency: setting(z.int().min(1).max(256), {
        default: 4,
        help: 'lines of batches that one process runs at the same time',
      }),
      providers: setting(z.array(name), {
        default: [],
        help: "providers in whose own batches lines run, at the model's price for the tier `batch`",
        details: 'See [what runs there](batches.md#at-the-provider).',
      }),
      output_days: setting(z.int().min(1).max(30), {
        member: 'outputDays',
        default: 7,
        unit: 'days',
        help: 'how long results of batches are kept, and files that no batch has used',
      }),
      file_bytes_max: setting(
        z
          .int()
          .min(1024)
          .max(2 ** 30),
        {
          member: 'fileBytesMax',
          default: 200 * 2 ** 20,
          unit: 'bytes',
          help: "largest file of a batch; a quarter more with Anthropic's API",
        },
      ),
      lines_max: setting(z.int().min(1).max(1_000_000), {
        member: 'linesMax',
        default: 50_000,
        help: "most lines of a batch; twice as many with Anthropic's API",
      }),
    },
  },

  alerts: {
    about: 'Who may get alerts.',
    settings: {
      email_domains: setting(z.array(name.toLowerCase()), {
        member: 'emailDomains',
        default: [],
        help: 'domains whose e-mail addresses the [alert rules](../operate/alerts.md#rules) of workspaces may name, besides those of their members',
      }),
    },
  },

  webhooks: {
    about: 'Webhooks that receive alerts.',
    settings: {
      allow_hosts: setting(hosts, {
        member: 'allowHosts',
        default: [],
        help: 'hosts, addresses and ranges that are not public and that [webhooks](../operate/alerts.md) may still call, over http too and on any port',
      }),
    },
  },

  payments: {
    about: 'Card payments through Stripe.',
    settings: {
      min: setting(usd(2), {
        default: '1.00',
        help: 'smallest [card payment](../operate/payments.md) in US dollars, in quotes',
      }),
      max: setting(usd(2), { default: '10000.00', help: 'largest card payment in US dollars, in quotes' }),
    },
  },

  sign_in: {
    member: 'signIn',
    about: 'How people sign in. The identity provider itself is set by environment variables.',
    settings: {
      mode: setting(z.enum(['invite', 'oidc', 'open'], { error: 'expected invite, oidc or open' }), {
        default: 'invite',
        help: 'who may create an account without an invitation: `invite` no one, `oidc` people of the identity provider, `open` anyone',
      }),
      opening_credit: setting(usd(9), {
        member: 'openingCredit',
        default: '0',
        help: 'what the workspace of someone who signed up starts with, in US dollars, in quotes',
      }),
      provider_name: setting(name.max(40), {
        member: 'providerName',
        default: 'single sign-on',
        help: 'the name in the button "Sign in with …"',
      }),
      allowed_domains: setting(z.array(name.toLowerCase()), {
        member: 'allowedDomains',
        default: [],
        unset: 'all, if verified',
        help: 'domains of e-mail addresses that may sign in with the identity provider',
        details: 'Addresses of these domains count as verified.',
      }),
      required_group: setting(name, {
        member: 'requiredGroup',
        help: 'only people in this group may sign in with the identity provider',
      }),
      group_claim: setting(name, {
        member: 'groupClaim',
        default: 'groups',
        help: 'the claim that lists groups',
      }),
      scopes: setting(scopes, {
        default: ['openid', 'email', 'profile'],
        help: 'what the gateway requests from the identity provider; must contain `openid`',
        details: 'Some providers send groups only if a scope such as `groups` is requested.',
      }),
      roles: setting(z.array(mappedRole), {
        default: [],
        help: 'roles that groups have, set at every sign-in',
        details: 'Each has `group`, `role` and, except for `operator`, `workspace`.',
        show: (roles) => roles.map(({ group, role }) => `${group} = ${role}`).join(', '),
      }),
    },
  },
} as const

export type SectionName = keyof typeof sections

export const sectionNames = Object.keys(sections) as SectionName[]

export function bySection<Result>(make: (name: SectionName) => Result): Readonly<Record<SectionName, Result>> {
  return Object.fromEntries(sectionNames.map((name) => [name, make(name)])) as Record<SectionName, Result>
}
