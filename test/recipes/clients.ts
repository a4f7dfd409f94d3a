// Which clients there are, in the versions that are tested, and how each is run. Those of Python are in python.ts: they
// have to be fetched first.

import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import {
  type FetchedClient,
  gatesOfPrevious,
  officialExceptions,
  type RecipeClient,
  recipePath,
  root,
} from './client.ts'
import { fetchOnce } from './fetched.ts'

const chatExamples = ['text', 'stream', 'tools', 'parallel', 'thinking', 'image', 'structured', 'models', 'errors']
export const examplesOf = {
  chat: chatExamples,
  messages: [...chatExamples.slice(0, -1), 'count', 'errors'],
  framework: chatExamples.filter((name) => name !== 'models'),
  gemini: [...chatExamples.slice(0, -1), 'count', 'errors'],
} as const

const official = { exceptions: officialExceptions, tellsRequestId: true, tellsStreamCost: true } as const

export const curl: RecipeClient = {
  name: 'curl',
  version: 'any',
  by: 'bash',
  recipe: 'curl.sh',
  surfaces: ['chat', 'messages'],
  examples: ['text', 'stream', 'tools', 'image', 'structured', 'models', 'count', 'errors'],
  command: () => ['bash', recipePath('curl.sh')],
  exceptions: { key: '401', model: '404', limit: '429', tellId: 'never' },
  tellsRequestId: false,
  tellsStreamCost: true,
  city: 'Paris',
  raw: true,
}

/** What Google's clients show. They have one class for every answer that is an error, and no place for its id. */
export const googleClient = {
  surfaces: ['gemini'],
  examples: examplesOf.gemini,
  tellsRequestId: true,
} as const

/** Google's client, in the current and the previous major version; it is fetched, because it brings 40 packages. */
export async function googleClients(): Promise<FetchedClient[]> {
  const settings = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--fetch-retries=1']
  return Promise.all(
    ['3.1.0', '2.32.0'].map(async (version, at): Promise<FetchedClient> => {
      const fetched = await fetchOnce(`google-genai-${version}`, (folder) => [
        {
          what: 'npm install',
          command: ['npm', 'install', '--prefix', folder, ...settings, `@google/genai@${version}`],
        },
      ])
      const recipe = 'google-genai.mjs'
      const installed = 'folder' in fetched ? join(fetched.folder, 'node_modules/@google/genai') : ''
      const client: RecipeClient = {
        ...googleClient,
        ...(at > 0 && { gates: gatesOfPrevious }),
        name: 'Google Gen AI JS',
        version,
        by: 'Node',
        recipe,
        command: (folder) => ['node', writeProgram(folder, recipe, { '@google/genai': installed })],
        exceptions: { key: 'ApiError', model: 'ApiError', limit: 'ApiError', broken: 'ApiError', tellId: 'never' },
        tellsStreamCost: true,
      }
      return { client, missing: 'reason' in fetched ? fetched.reason : undefined }
    }),
  )
}

/** The npm clients: current majors as the recipes import them, the majors before as a program for Node. */
export function javascriptClients(): RecipeClient[] {
  const byBun = (recipe: string) => ({ by: 'Bun', recipe, command: () => [process.execPath, recipePath(recipe)] })
  const byNode = (recipe: string, aliases: Record<string, string>) => ({
    by: 'Node',
    gates: gatesOfPrevious,
    recipe,
    command: (folder: string) => ['node', writeProgram(folder, recipe, aliases)],
  })
  const openai = { ...official, name: 'OpenAI JS', surfaces: ['chat'], examples: examplesOf.chat } as const
  const anthropic = {
    ...official,
    name: 'Anthropic JS',
    surfaces: ['messages'],
    examples: examplesOf.messages,
  } as const
  const framework = { surfaces: ['chat', 'messages'], examples: examplesOf.framework, tellsStreamCost: true } as const
  const before = { openai: 'openai-6', '@anthropic-ai/sdk': '@anthropic-ai/sdk-0', zod: 'zod' }
  return [
    { ...openai, version: versionOf('openai'), ...byBun('openai.ts') },
    { ...openai, version: versionOf('openai-6'), ...byNode('openai.ts', before) },
    { ...anthropic, version: versionOf('@anthropic-ai/sdk'), ...byBun('anthropic.ts') },
    { ...anthropic, version: versionOf('@anthropic-ai/sdk-0'), ...byNode('anthropic.ts', before) },
    {
      ...framework,
      name: 'Vercel AI SDK',
      version: versionOf('ai'),
      surfaces: ['chat', 'messages', 'responses'],
      packages: {
        responses: `openai ${versionOf('@ai-sdk/openai')}`,
        chat: `openai-compatible ${versionOf('@ai-sdk/openai-compatible')}`,
        messages: `anthropic ${versionOf('@ai-sdk/anthropic')}`,
      },
      ...byBun('ai-sdk.ts'),
      exceptions: {
        key: 'AI_APICallError',
        model: 'AI_APICallError',
        limit: 'AI_APICallError',
        broken: 'AI_StreamProviderError',
        tellId: 'answers',
      },
      tellsRequestId: true,
    },
    {
      ...framework,
      name: 'LangChain.js',
      version: versionOf('@langchain/core'),
      packages: {
        chat: `openai ${versionOf('@langchain/openai')}`,
        messages: `anthropic ${versionOf('@langchain/anthropic')}`,
      },
      ...byBun('langchain.ts'),
      exceptions: officialExceptions,
      tellsRequestId: false,
      tellsStreamCost: false,
      addsUpUsage: true,
      asksForThoughts: false,
    },
  ]
}

function versionOf(name: string): string {
  const manifest = readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}

/** The recipe as a JavaScript file in a folder where its packages' names lead to those that are meant. */
function writeProgram(folder: string, recipe: string, packages: Record<string, string>): string {
  for (const [name, installed] of Object.entries(packages)) {
    const link = join(folder, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(resolve(root, 'node_modules', installed), link)
  }
  const program = join(folder, recipe.replace(/ts$/, 'mjs'))
  writeFileSync(program, new Bun.Transpiler({ loader: 'ts' }).transformSync(readFileSync(recipePath(recipe), 'utf8')))
  return program
}
