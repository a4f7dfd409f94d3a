// The words that say what a policy does, for the configuration file and the management API.

/** What is checked: the request before it is sent to a provider, the answer before it is sent to the client, or both. */
export const policyMoments = ['request', 'answer', 'both'] as const

/** What happens to a request or answer that the policy has not judged: it is refused, or it goes on. */
export const policyFailureModes = ['closed', 'open'] as const

/** watch: verdicts are recorded, and nothing is refused. */
export const policyModes = ['enforce', 'watch'] as const

/** How the policy gets images and documents: their SHA-256, or their bytes. */
export const policyMedia = ['digest', 'bytes'] as const
