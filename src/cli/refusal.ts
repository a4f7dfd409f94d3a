// How a command ends that did not do what was asked: a message, what to try, and the exit code for scripts.

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

/** Returned, not thrown: an expected outcome of every call. */
export class Refusal {
  constructor(
    readonly exit: ExitCode,
    readonly message: string,
    /** A command or a setting, as one would type it. */
    readonly attempt?: string,
  ) {}
}

export function usageRefusal(message: string, attempt?: string): Refusal {
  return new Refusal(exitCodes.usage, message, attempt)
}

/** If the object does not exist, suggests the command that lists those that do. */
export function orListedBy<Answer>(answer: Answer | Refusal, attempt: string): Answer | Refusal {
  const isMissing = answer instanceof Refusal && answer.exit === exitCodes.notFound
  return isMissing ? new Refusal(answer.exit, answer.message, attempt) : answer
}

/** Every refusal suggests something to try, at least the command's help. */
export function refusalText({ message, attempt }: Refusal, otherwise: string): string {
  return `tollgate: ${message}\nTry: ${attempt ?? otherwise}\n`
}
