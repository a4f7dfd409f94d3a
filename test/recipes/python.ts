// The official clients for Python, in the current and the previous major version, each in a separate virtual environment.

import { join } from 'node:path'
import { type FetchedClient, gatesOfPrevious, officialExceptions, type RecipeClient, recipePath } from './client.ts'
import { examplesOf, googleClient } from './clients.ts'
import { type Fetched, fetchOnce } from './fetched.ts'

export const pythonVersions = {
  openai: ['3.49.0', '2.54.0'],
  anthropic: ['2.8.0', '1.17.0'],
  'google-genai': ['3.1.0', '2.34.0'],
} as const
type PackageName = keyof typeof pythonVersions

/** An interpreter with the package; `missing` = why there is none. */
export async function fetchPython(name: string, version: string) {
  const installer = await fetchInstaller()
  if ('reason' in installer) return { python: 'python3', missing: installer.reason }
  const fetched = await fetchOnce(`python-${name}-${version}`, (folder) => [
    { what: 'python3 -m venv', command: ['python3', '-m', 'venv', '--without-pip', folder] },
    {
      what: 'pip install',
      command: [
        ...[join(installer.folder, 'bin/python'), '-m', 'pip', '--python', join(folder, 'bin/python'), 'install'],
        // Importing compiles the modules that a recipe uses, and pip would compile all.
        ...['--no-compile', '--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '20'],
        `${name}==${version}`,
      ],
    },
  ])
  return 'folder' in fetched
    ? { python: join(fetched.folder, 'bin/python'), missing: undefined }
    : { python: 'python3', missing: fetched.reason }
}

let installer: Promise<Fetched> | undefined

/** An environment with pip, which installs into the others: a copy of pip in each takes as long as the package itself. */
function fetchInstaller(): Promise<Fetched> {
  installer ??= fetchOnce('python-pip', (folder) => [
    { what: 'python3 -m venv', command: ['python3', '-m', 'venv', folder] },
  ])
  return installer
}

export async function pythonClients(): Promise<FetchedClient[]> {
  const wanted = (Object.keys(pythonVersions) as PackageName[]).flatMap((name) =>
    pythonVersions[name].map((version) => ({ name, version })),
  )
  const clients = await Promise.all(
    wanted.map(async ({ name, version }) => {
      const { python, missing } = await fetchPython(name, version)
      const isPrevious = version !== pythonVersions[name][0]
      const client = { ...clientOf(name, version, python), ...(isPrevious && { gates: gatesOfPrevious }) }
      return name === 'openai'
        ? [
            { client, missing },
            { client: responsesOf(client, python), missing },
          ]
        : [{ client, missing }]
    }),
  )
  return clients.flat()
}

/** The same package on its other API. */
function responsesOf(client: RecipeClient, python: string): RecipeClient {
  const recipe = 'openai-python-responses.py'
  return {
    ...client,
    recipe,
    surfaces: ['responses'],
    examples: examplesOf.framework,
    command: () => [python, recipePath(recipe)],
    forkCommand: [python, join(import.meta.dir, 'fork.py'), 'openai', recipePath(recipe)],
    // The end of a stream that breaks off is an event.
    exceptions: { ...officialExceptions, broken: 'response.failed', tellId: 'answers' },
  }
}

function clientOf(name: PackageName, version: string, python: string): RecipeClient {
  const recipe = `${name}-python.py`
  if (name === 'google-genai') {
    return {
      ...googleClient,
      name: 'Google Gen AI Python',
      version,
      by: 'Python',
      recipe,
      command: () => [python, recipePath(recipe)],
      forkCommand: [python, join(import.meta.dir, 'fork.py'), 'google.genai', recipePath(recipe)],
      exceptions: {
        ...{ key: 'ClientError', model: 'ClientError', limit: 'ClientError', broken: 'ServerError', tellId: 'never' },
      },
      tellsStreamCost: false,
    }
  }
  const isChat = name === 'openai'
  return {
    name: isChat ? 'OpenAI Python' : 'Anthropic Python',
    version,
    by: 'Python',
    recipe,
    surfaces: [isChat ? 'chat' : 'messages'],
    examples: isChat ? examplesOf.chat : examplesOf.messages,
    command: () => [python, recipePath(recipe)],
    forkCommand: [python, join(import.meta.dir, 'fork.py'), name, recipePath(recipe)],
    exceptions: isChat
      ? { ...officialExceptions, tellId: 'answers' }
      : { ...officialExceptions, broken: 'APIStatusError' },
    tellsRequestId: true,
    tellsStreamCost: true,
  }
}
