"""One row a distribution: how to build it, its parameters, what is special. The properties are in test_distributions.py."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """`build` is evaluated with the names of torch.distributions, `torch` and the parameters (nested lists: tensors)."""

    name: str
    build: str
    params: dict
    samples: str = "same"  # "same": PyTorch's numbers for a seed; "device": others, compared by their distribution
    tol: tuple = (0.0, 0.0)
    dtype: str = "float64"
    why: str = ""


def case(name, build, samples="same", tol=(0.0, 0.0), dtype="float64", why="", **params):
    return Case(name, build, params, samples, tol, dtype, why)


LOC, SCALE = [0.5, -1.0, 2.0], [[1.0, 0.5, 2.0], [0.3, 1.5, 1.0]]
POSITIVE, OTHER = [0.4, 1.0, 5.0], [[1.5, 0.7, 2.0], [3.0, 1.0, 0.5]]
PROBS, LOGITS = [0.1, 0.5, 0.9], [[-2.0, 0.0, 1.5], [0.3, 3.0, -1.0]]
WEIGHTS = [[0.2, 0.3, 0.5], [1.0, 0.1, 0.4]]
SCORES = [[0.2, -1.0, 2.0], [0.0, 0.0, 0.0]]
MATRIX = [[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 1.5]]
FACTOR = [[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-0.3, 0.2, 0.7]]
W, D = [[0.5, 1.0], [-0.2, 0.3], [1.0, 0.1]], [1.0, 0.5, 2.0]

CASES = [
    case("Normal", "Normal(loc, scale)", loc=LOC, scale=SCALE),
    case("Normal-0d", "Normal(loc, scale)", loc=0.3, scale=2.0),
    case("Bernoulli", "Bernoulli(probs)", probs=PROBS),
    case("Bernoulli-logits", "Bernoulli(logits=logits)", logits=LOGITS),
    case("Beta", "Beta(a, b)", "device", a=POSITIVE, b=OTHER),
    case("Binomial", "Binomial(4, probs)", "device", probs=PROBS),
    case("Binomial-logits", "Binomial(torch.tensor(3), logits=logits)", "device", logits=LOGITS),
    case("Categorical", "Categorical(probs)", probs=WEIGHTS),
    case("Categorical-logits", "Categorical(logits=logits)", logits=SCORES),
    case("Categorical-1d", "Categorical(logits=logits)", logits=SCORES[0]),
    case("Cauchy", "Cauchy(loc, scale)", loc=LOC, scale=SCALE),
    case("Chi2", "Chi2(df)", "device", df=POSITIVE),
    case("ContinuousBernoulli", "ContinuousBernoulli(probs)", probs=[0.1, 0.5, 0.7]),
    case("ContinuousBernoulli-logits", "ContinuousBernoulli(logits=logits)", logits=LOGITS),
    case("ContinuousBernoulli-far", "ContinuousBernoulli(logits=logits)", logits=[-800.0, -30.0, 30.0, 800.0]),
    case("Dirichlet", "Dirichlet(concentration)", "device", concentration=[POSITIVE, [1.0, 2.0, 3.0]]),
    case("Dirichlet-small", "Dirichlet(concentration)", "device", concentration=[[0.5, 0.9, 0.7], [2.0, 1.0, 4.0]]),
    case("Exponential", "Exponential(rate)", rate=OTHER),
    case("FisherSnedecor", "FisherSnedecor(df1, df2)", "device", df1=[1.0, 3.0, 6.0], df2=[1.5, 3.0, 8.0]),
    case("Gamma", "Gamma(concentration, rate)", "device", concentration=POSITIVE, rate=OTHER),
    case(
        "GeneralizedPareto",
        "GeneralizedPareto(loc, scale, concentration)",
        loc=LOC,
        scale=SCALE,
        concentration=[-0.4, 0.3, 1.2],
        dtype="float32",
        tol=(2e-5, 2e-5),
        why="PyTorch compares with a float32 zero and refuses other types; both round to single precision",
    ),
    case("Geometric", "Geometric(probs)", probs=PROBS),
    case("Geometric-logits", "Geometric(logits=logits)", logits=LOGITS),
    case("Gumbel", "Gumbel(loc, scale)", loc=LOC, scale=SCALE),
    case("HalfCauchy", "HalfCauchy(scale)", scale=SCALE),
    case("HalfNormal", "HalfNormal(scale)", scale=SCALE),
    case("Independent", "Independent(Normal(loc, scale), 1)", loc=LOC, scale=SCALE),
    case("Independent-0", "Independent(Bernoulli(probs), 0)", probs=PROBS),
    case("InverseGamma", "InverseGamma(concentration, rate)", "device", concentration=[0.5, 1.5, 4.0], rate=OTHER),
    case("Kumaraswamy", "Kumaraswamy(a, b)", a=POSITIVE, b=OTHER),
    case("LKJCholesky", "LKJCholesky(3, concentration)", "device", concentration=[0.7, 1.0, 2.5]),
    case("Laplace", "Laplace(loc, scale)", loc=LOC, scale=SCALE),
    case("LogNormal", "LogNormal(loc, scale)", loc=LOC, scale=SCALE),
    case("LogisticNormal", "LogisticNormal(loc, scale)", loc=LOC, scale=SCALE),
    case("LowRankMultivariateNormal", "LowRankMultivariateNormal(loc, w, d)", loc=[LOC, LOC], w=W, d=D),
    case(
        "MixtureSameFamily",
        "MixtureSameFamily(Categorical(weights), Normal(loc, scale))",
        weights=WEIGHTS,
        loc=LOC,
        scale=SCALE,
    ),
    case(
        "MixtureSameFamily-vectors",
        "MixtureSameFamily(Categorical(weights), Independent(Normal(loc, scale), 1))",
        weights=WEIGHTS[0],
        loc=[[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]],
        scale=[1.0, 2.0],
    ),
    case("Multinomial", "Multinomial(5, probs)", probs=WEIGHTS),
    case("Multinomial-logits", "Multinomial(2, logits=logits)", logits=SCORES[0]),
    case("MultivariateNormal", "MultivariateNormal(loc, matrix)", loc=[LOC, LOC], matrix=MATRIX),
    case("MultivariateNormal-precision", "MultivariateNormal(loc, precision_matrix=matrix)", loc=LOC, matrix=MATRIX),
    case("MultivariateNormal-factor", "MultivariateNormal(loc, scale_tril=factor)", loc=[LOC, LOC], factor=FACTOR),
    case("NegativeBinomial", "NegativeBinomial(count, probs)", "device", count=POSITIVE, probs=PROBS),
    case("NegativeBinomial-logits", "NegativeBinomial(count, logits=logits)", "device", count=POSITIVE, logits=LOGITS),
    case("OneHotCategorical", "OneHotCategorical(probs)", probs=WEIGHTS),
    case("OneHotCategorical-logits", "OneHotCategorical(logits=logits)", logits=SCORES),
    case("OneHotCategoricalStraightThrough", "OneHotCategoricalStraightThrough(probs)", probs=WEIGHTS),
    case("Pareto", "Pareto(scale, alpha)", scale=POSITIVE, alpha=OTHER),
    case("Poisson", "Poisson(rate)", "device", rate=POSITIVE),
    case("RelaxedBernoulli", "RelaxedBernoulli(temperature, probs)", temperature=0.7, probs=PROBS),
    case("RelaxedBernoulli-logits", "RelaxedBernoulli(temperature, logits=logits)", temperature=2.0, logits=LOGITS),
    case("RelaxedOneHotCategorical", "RelaxedOneHotCategorical(temperature, probs)", temperature=0.7, probs=WEIGHTS),
    case(
        "RelaxedOneHotCategorical-logits",
        "RelaxedOneHotCategorical(temperature, logits=logits)",
        temperature=2.0,
        logits=SCORES[0],
    ),
    case("StudentT", "StudentT(df, loc, scale)", "device", df=[0.8, 1.5, 6.0], loc=LOC, scale=SCALE),
    case(
        "TransformedDistribution",
        "TransformedDistribution(Normal(loc, scale), [AffineTransform(1.0, -2.0), SigmoidTransform()])",
        loc=LOC,
        scale=SCALE,
    ),
    case(
        "TransformedDistribution-simplex",
        "TransformedDistribution(Normal(loc, scale), [ExpTransform(), StickBreakingTransform()])",
        loc=LOC,
        scale=SCALE,
    ),
    case("Uniform", "Uniform(low, high)", low=LOC, high=[2.5, 0.0, 2.2]),
    case(
        "VonMises",
        "VonMises(loc, concentration)",
        loc=LOC,
        concentration=OTHER,
        tol=(1e-6, 1e-6),
        why="PyTorch's Bessel functions here are polynomials of single precision",
    ),
    case("Weibull", "Weibull(scale, concentration)", scale=POSITIVE, concentration=OTHER),
    case("Wishart", "Wishart(df, matrix)", "device", df=[3.5, 6.0], matrix=MATRIX),
    case("Wishart-factor", "Wishart(df, scale_tril=factor)", "device", df=4.0, factor=FACTOR),
    case("Wishart-precision", "Wishart(df, precision_matrix=matrix)", "device", df=4.0, matrix=MATRIX),
]
