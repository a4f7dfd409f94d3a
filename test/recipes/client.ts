// A client with its recipe: how it is run, and what its kind makes of an answer. Which ones there are is in the tests.

import { join } from 'node:path'
import type { GateName } from './gates.ts'

export type Surface = 'chat' | 'messages' | 'responses' | 'gemini'

/** Surfaces with an example that counts tokens. */
export const counts = (surface: Surface): boolean => surface === 'messages' || surface === 'gemini'

export interface Exceptions {
  /** The name of the class for a wrong key, an unknown model and a throttled one. */
  readonly key: string
  readonly model: string
  readonly limit: string
  /** For a stream that breaks off; undefined where the recipe does not show it. */
  readonly broken?: string
  /** Where the client tells the request's id: in every exception, in those of answers, or nowhere. */
  readonly tellId: 'always' | 'answers' | 'never'
}

export interface RecipeClient {
  /** As people say it; the row of the table. */
  readonly name: string
  readonly version: string
  /** The package behind each surface, where the client is made of several. */
  readonly packages?: Readonly<Partial<Record<Surface, string>>>
  /** The program that runs it. */
  readonly by: string
  readonly recipe: string
  readonly surfaces: readonly Surface[]
  readonly examples: readonly string[]
  /** The command line. The folder is for files that the run needs. */
  command(folder: string): string[]
  /** Runs it behind several gates at once, with a file, a URL and a key for each as arguments; undefined = one process each. */
  readonly forkCommand?: readonly string[]
  /** Behind which gates `npm test` runs it; undefined = all, as `write-table.ts` does. */
  readonly gates?: readonly GateName[]
  readonly exceptions: Exceptions
  readonly tellsRequestId: boolean
  readonly tellsStreamCost: boolean
  /** Takes the usage of a stream for a sum of its parts. */
  readonly addsUpUsage?: boolean
  /** false: the recipe's chat client sends no wish for reasoning. */
  readonly asksForThoughts?: boolean
  /** The argument of its tool, if not what the sandbox makes up. */
  readonly city?: string
  /** Prints the wire as it is, and not what a program makes of it. */
  readonly raw?: boolean
}

export interface FetchedClient {
  readonly client: RecipeClient
  /** Why it cannot be run here; undefined = it can. */
  readonly missing: string | undefined
}

export const root = join(import.meta.dir, '../..')
export const recipePath = (name: string): string => join(root, 'docs/recipes', name)

/**
 * Of a previous major version: as bytes and translated, in both directions. What a gate sends does not depend on the version
 * of the client, so the others would repeat what the current version shows.
 */
export const gatesOfPrevious: readonly GateName[] = ['openai-chat', 'anthropic-messages']

/** The exceptions that both official families share. */
export const officialExceptions = {
  key: 'AuthenticationError',
  model: 'NotFoundError',
  limit: 'RateLimitError',
  broken: 'APIError',
  tellId: 'always',
} as const satisfies Exceptions
