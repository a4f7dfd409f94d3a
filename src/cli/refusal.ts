// The error of a command: a message, what to try, and the exit code for scripts.

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  unauthorized: 3,
  notFound: 4,
  /** A limit was reached, or the balance is too low. */
  limit: 5,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** Thrown anywhere in a command; `runCommand` prints it. */
export class Refusal extends Error {
  constructor(
    readonly exit: ExitCode,
    message: string,
    /** A command or a setting, as typed in a shell. */
    readonly attempt?: string,
  ) {
    super(message)
  }

  /** Every refusal suggests something to try, at least the command's help. */
  text(otherwise: string): string {
    return `tollgate: ${this.message}\nTry: ${this.attempt ?? otherwise}\n`
  }

  /** The same for --json, on one line. */
  json(otherwise: string): string {
    const error = { message: this.message, try: this.attempt ?? otherwise, exit_code: this.exit }
    return `${JSON.stringify({ error })}\n`
  }
}

export function usageRefusal(message: string, attempt?: string): Refusal {
  return new Refusal(exitCodes.usage, message, attempt)
}

/** Returns the result, or the refusal that was thrown. */
export async function tryTo<Result>(work: Promise<Result>): Promise<Result | Refusal> {
  try {
    return await work
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown
    throw thrown
  }
}

/** Returns undefined for a refusal: for calls whose result is only extra output. */
export async function ifPossible<Result>(work: Promise<Result>): Promise<Result | undefined> {
  const result = await tryTo(work)
  return result instanceof Refusal ? undefined : result
}

/** If the object does not exist, suggests the command that lists those that do. */
export async function listedBy<Result>(attempt: string | undefined, work: Promise<Result>): Promise<Result> {
  const result = await tryTo(work)
  if (!(result instanceof Refusal)) return result
  throw attempt !== undefined && result.exit === exitCodes.notFound
    ? new Refusal(result.exit, result.message, attempt)
    : result
}
